"""Reads from Kafka what was written about pipelines before a runner owned their partitions.

Fulfils `Recovery`.
"""

import logging
from collections.abc import Iterable

from waybill_shared.contract import codec
from waybill_shared.contract.errors import InvalidMessage
from waybill_shared.contract.events import PipelineRecord, Reply
from waybill_shared.kafka.clients import position_of, read_to_end
from waybill_shared.kafka.cluster import Kafka
from waybill_shared.kafka.own_topics import OwnTopics

logger = logging.getLogger(__name__)


class KafkaRecovery:
    def __init__(self, topics: OwnTopics, prefix: str) -> None:
        self._topics = topics
        self._kafka = topics.admin.cluster
        self._pipelines = f"{prefix}.pipelines"
        self._commands = f"{prefix}.commands"
        self._replies = f"{prefix}.replies"

    def commands_id(self) -> str:
        return self._topics.id_of(self._commands)

    def records(self, partitions: Iterable[int]) -> dict[int, list[PipelineRecord]]:
        return read_records(self._kafka, self._pipelines, partitions)

    def find_answered(self, partitions: Iterable[int]) -> dict[int, list[str]]:
        return read_answered_ids(self._kafka, self._replies, partitions)


def read_answered_ids(kafka: Kafka, topic: str, partitions: Iterable[int]) -> dict[int, list[str]]:
    """Return the ids of the commands that were answered lately, by partition."""
    found: dict[int, list[str]] = {}
    for message in read_to_end(kafka, topic, partitions):
        try:
            reply = codec.decode(Reply, message.value() or b"")
        except InvalidMessage as error:
            logger.error("answer skipped", extra={"reason": str(error)})
            continue
        found.setdefault(position_of(message)[0], []).append(reply.id)
    return found


def _record(value: bytes) -> PipelineRecord | None:
    try:
        return codec.decode(PipelineRecord, value)
    except InvalidMessage as error:
        logger.error("pipeline record skipped", extra={"reason": str(error)})
        return None


def read_records(
    kafka: Kafka, topic: str, partitions: Iterable[int]
) -> dict[int, list[PipelineRecord]]:
    """Return the newest record of each pipeline, by partition."""
    newest: dict[str, tuple[int, PipelineRecord]] = {}
    for message in read_to_end(kafka, topic, partitions):
        value = message.value()
        if value is not None and (record := _record(value)) is not None:
            newest[record.pipeline_uid] = (position_of(message)[0], record)
    grouped: dict[int, list[PipelineRecord]] = {}
    for partition, record in newest.values():
        grouped.setdefault(partition, []).append(record)
    return grouped
