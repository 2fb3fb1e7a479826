"""Which partitions of commands this runner owns, and the runner of each."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace

from waybill_shared.contract import codec
from waybill_shared.contract.errors import InvalidMessage
from waybill_shared.contract.events import PipelineRecord, Reply
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.clients import position_of, read_to_end
from waybill_shared.kafka.cluster import Kafka
from waybill_shared.kafka.own_topics import OwnTopics
from waybill_stage_runner.app import Runner

logger = logging.getLogger(__name__)


class Ownership:
    def __init__(
        self,
        kafka: Kafka,
        topics: OwnTopics,
        prefix: str,
        make_runner: Callable[[int], Runner],
    ) -> None:
        """`make_runner`: shuts out who had the partition before it returns. Raises Retryable."""
        self._kafka = kafka
        self._topics = topics
        self._topic = f"{prefix}.pipelines"
        self._commands = f"{prefix}.commands"
        self._replies = f"{prefix}.replies"
        self._make_runner = make_runner
        self._runners: dict[int, Runner] | None = None

    def acquire(self, partitions: Iterable[int]) -> None:
        """Pipelines share key, partition count and partitioner over all topics of ours.

        What is read is read after everybody else was shut out: it is the last word.
        """
        commands_id = self._topics.id_of(self._commands)  # asked before anything is read
        fresh = {partition: self._make_runner(partition) for partition in partitions}
        records = read_records(self._kafka, self._topic, fresh)
        answered = read_answered(self._kafka, self._replies, fresh)
        for partition, runner in fresh.items():
            runner.adopt_answers(answered.get(partition, ()))
            for record in records.get(partition, []):
                runner.adopt(_placed(record, commands_id))
        self._runners = {**(self._runners or {}), **fresh}

    def runners(self) -> dict[int, Runner]:
        return dict(self._runners or {})

    def release(self, partitions: Iterable[int]) -> None:
        for partition in partitions:
            runner = (self._runners or {}).pop(partition, None)
            if runner is not None:
                runner.release()

    def check(self) -> str | None:
        return None if self._runners is not None else "waiting for partitions of the commands topic"


def watched_topics(admin: KafkaAdmin, prefix: str) -> OwnTopics:
    """In another topic of commands none was carried out yet; in another of commits no definition
    stands, and the runner that comes next says them again; in another of lifecycle the epochs of
    drivers begin again."""
    return OwnTopics(admin, [f"{prefix}.{name}" for name in ("commands", "commits", "lifecycle")])


def _placed(record: PipelineRecord, commands_id: str) -> PipelineRecord:
    """In another topic of commands than the record names, none was carried out yet."""
    return record if record.commands_id == commands_id else replace(record, commanded_at=-1)


def read_answered(kafka: Kafka, topic: str, partitions: Iterable[int]) -> dict[int, list[str]]:
    """Ids of the commands that were answered lately, by partition."""
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
    """The newest record of each pipeline, by partition."""
    newest: dict[str, tuple[int, PipelineRecord]] = {}
    for message in read_to_end(kafka, topic, partitions):
        value = message.value()
        if value is not None and (record := _record(value)) is not None:
            newest[record.pipeline_uid] = (position_of(message)[0], record)
    grouped: dict[int, list[PipelineRecord]] = {}
    for partition, record in newest.values():
        grouped.setdefault(partition, []).append(record)
    return grouped
