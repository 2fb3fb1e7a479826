"""Consumer groups of Kafka that have offsets and no members: for tools that show lag.

Nothing of Waybill ever reads them. Fulfils `Groups`.
"""

from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from typing import Final

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicPartition

from waybill_shared.kafka.admin import KafkaAdmin
from waybill_token_tracker.app.ports import OffsetsByName

TIMEOUT_S: Final = 5.0  # lag is not looked at meanwhile


class ConsumerGroups:
    def __init__(self, admin: KafkaAdmin) -> None:
        self._admin = admin

    def write(self, groups: Mapping[str, OffsetsByName]) -> dict[str, str]:
        """What went wrong, by group; all others stand in Kafka as they are given here."""
        asked = [(group, self._write(group, offsets)) for group, offsets in groups.items()]
        failed = {}
        for group, future in asked:
            try:
                places = future.result().topic_partitions
                wrong = [place.error for place in places or () if place.error is not None]
            except KafkaException as error:
                wrong = [error.args[0]]
            if wrong:
                failed[group] = str(wrong[0].str())
        return failed

    def delete(self, groups: Iterable[str]) -> dict[str, str]:
        """What went wrong, by group; one that does not exist is deleted."""
        wanted = sorted(groups)
        if not wanted:
            return {}
        failed = {}
        asked = self._admin.ask(
            lambda client: client.delete_consumer_groups(wanted, request_timeout=TIMEOUT_S)
        )
        for group, future in asked.items():
            try:
                future.result()
            except KafkaException as error:
                if error.args[0].code() != KafkaError.GROUP_ID_NOT_FOUND:
                    failed[group] = str(error.args[0].str())
        return failed

    def _write(self, group: str, offsets: OffsetsByName) -> "Future[ConsumerGroupTopicPartitions]":
        places = [
            TopicPartition(topic, partition, at) for (topic, partition), at in offsets.items()
        ]
        asked = [ConsumerGroupTopicPartitions(group, places)]
        futures = self._admin.ask(
            lambda client: client.alter_consumer_group_offsets(asked, request_timeout=TIMEOUT_S)
        )
        return futures[group]
