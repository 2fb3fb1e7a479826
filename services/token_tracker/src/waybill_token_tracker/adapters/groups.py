"""Writes consumer groups of Kafka that have offsets and no members: for tools that show lag.

Waybill itself never reads them. Implements `Groups`.
"""

from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from functools import partial
from typing import Final

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from waybill_shared.kafka.admin import COORDINATOR_TIMEOUT_S, KafkaAdmin
from waybill_token_tracker.app.ports import OffsetsByName

TIMEOUT_S: Final = 5.0  # lag is not measured meanwhile


class ConsumerGroups:
    def __init__(self, admin: KafkaAdmin) -> None:
        self._admin = admin

    def write(self, groups: Mapping[str, OffsetsByName]) -> dict[str, str]:
        """Write the offsets. Return the error by group; all other groups have the given offsets
        then."""
        failed = {}
        asked = self._admin.ask_coordinators(partial(_writes, groups), TIMEOUT_S)
        for group, future in asked.items():
            try:
                places = future.result().topic_partitions
                wrong = [place.error for place in places or () if place.error is not None]
            except KafkaException as error:
                wrong = [error.args[0]]
            if wrong:
                failed[group] = str(wrong[0].str())
        return failed

    def delete(self, groups: Iterable[str]) -> dict[str, str]:
        """Delete the groups. Return the error by group; one that does not exist counts as
        deleted."""
        wanted = sorted(groups)
        if not wanted:
            return {}
        failed = {}
        asked = self._admin.ask_coordinators(
            lambda client: client.delete_consumer_groups(
                wanted, request_timeout=COORDINATOR_TIMEOUT_S
            ),
            TIMEOUT_S,
        )
        for group, future in asked.items():
            try:
                future.result()
            except KafkaException as error:
                if error.args[0].code() != KafkaError.GROUP_ID_NOT_FOUND:
                    failed[group] = str(error.args[0].str())
        return failed


def _writes(
    groups: Mapping[str, OffsetsByName], client: AdminClient
) -> "dict[str, Future[ConsumerGroupTopicPartitions]]":
    asked: dict[str, Future[ConsumerGroupTopicPartitions]] = {}
    for group, offsets in groups.items():
        places = [TopicPartition(*place, offset) for place, offset in offsets.items()]
        asked |= client.alter_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(group, places)], request_timeout=COORDINATOR_TIMEOUT_S
        )
    return asked
