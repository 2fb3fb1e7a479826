"""Reads the end offsets of the topics of pipelines. Implements `Topics`."""

from collections.abc import Iterable

from waybill_shared.kafka.admin import KafkaAdmin
from waybill_token_tracker.app.ports import Ends


class KafkaTopics:
    def __init__(self, admin: KafkaAdmin) -> None:
        self._admin = admin

    def ends(self, names: Iterable[str]) -> Ends:
        topics = self._admin.identify(names)
        if not topics:
            return {}
        ends = self._admin.ends_of(topics.values())
        return {topics[name].topic_id: of_topic for name, of_topic in ends.items()}
