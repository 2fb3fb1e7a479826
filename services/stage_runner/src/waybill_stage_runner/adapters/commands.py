"""Reads commands from Kafka, of the partitions that this runner owns."""

import logging
from collections.abc import Callable
from typing import Final

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka import Message as KafkaMessage

from waybill_shared.contract import codec
from waybill_shared.contract.errors import InvalidMessage, Retryable
from waybill_shared.contract.events import Command
from waybill_shared.kafka.clients import position_of, subscribe
from waybill_shared.kafka.membership import Membership
from waybill_shared.kafka.own_topics import OwnTopics
from waybill_stage_runner.app.measuring import count_skipped
from waybill_stage_runner.core.pipelines.command_progress import CommandProgress

logger = logging.getLogger(__name__)

ANSWER_TIMEOUT_S: Final = 10.0  # for the group's offsets


class CommandReader:
    """The queue of commands of the partitions that this runner owns.

    An offset is committed only when every command up to it was answered. So after a restart those
    that were left open are carried out again. Which of those after it are answered is committed
    with it: see `command_progress`.
    """

    def __init__(
        self,
        consumer: Consumer,
        topic: str,
        *,
        acquire: Callable[[list[int]], None],
        release: Callable[[list[int]], None],
        membership: Membership,
        topics: OwnTopics,
    ) -> None:
        self._consumer = consumer
        self._topics = topics
        self._membership = membership
        self._topic = topic
        self._progress: dict[int, CommandProgress] = {}
        self._committed: dict[int, tuple[int, str]] = {}
        self._acquire = acquire
        self._release = release
        self._assigned: list[int] = []
        self._current: tuple[int, int, Command] | None = None
        self._early: KafkaMessage | None = None
        subscribe(consumer, [topic], on_assign=self._on_assign, on_revoke=self._on_revoke)

    def next(self, timeout_s: float) -> tuple[int, int, Command] | None:
        """Return the next command with its partition and offset; the same one until `done` is
        called.
        """
        if self._current is None:
            self._current = self._poll(timeout_s)
        return self._current

    def finish(self) -> None:
        self._current = None

    def later(self) -> None:
        """Read the current command again later. Meanwhile those of other partitions may come."""
        assert self._current is not None
        partition, offset, _ = self._current
        self._seek(partition, offset)
        self._current = None
        self._progress[partition].read_again(offset)

    def commit(self, unanswered: set[str]) -> None:
        """Commit up to the first command that is still to be answered."""
        if self._current is not None:
            unanswered = unanswered | {self._current[2].id}
        positions = []
        for partition, progress in self._progress.items():
            progress.close_answered(unanswered)
            if progress.position != self._committed.get(partition):
                positions.append(TopicPartition(self._topic, partition, *progress.position))
        if not positions:
            return
        try:
            done = self._consumer.commit(offsets=positions, asynchronous=False)
        except KafkaException as error:  # the next round tries it again
            logger.warning("offsets not committed", extra={"reason": str(error)})
            return
        refused = {at.partition: at.error for at in done or () if at.error is not None}
        if refused:
            logger.warning("offsets not committed", extra={"reason": str(refused)})
        for at in positions:
            if at.partition not in refused:
                self._committed[at.partition] = (at.offset, at.metadata or "")

    def _poll(self, timeout_s: float) -> tuple[int, int, Command] | None:
        if self._assigned:
            progress = self._read_progress(self._assigned)
            self._acquire(self._assigned)  # outside the callback, because it reads topics
            self._progress |= progress
            self._committed |= {at: each.position for at, each in progress.items()}
            self._assigned = []
        self._membership.check()
        self._topics.check()
        message, self._early = self._early or self._consumer.poll(timeout_s), None
        if message is None:
            return None
        if self._assigned:  # it arrived with its partition, before its pipelines are known
            self._early = message
            return None
        error = message.error()
        if error is not None:
            raise Retryable(f"topic {self._topic}: {error.str()}")
        return self._read(message)

    def _read(self, message: KafkaMessage) -> tuple[int, int, Command] | None:
        """Return the command of the message, unless it was answered before, or must wait because
        too many are open.
        """
        (partition, offset), value = position_of(message), message.value()
        progress = self._progress.get(partition)
        if progress is None or progress.reach(offset):
            return None
        if not progress.has_room_for(offset):
            self._seek(partition, offset)
            return None
        try:
            command = codec.decode(Command, value or b"")
        except InvalidMessage as invalid:
            progress.skip(offset)
            count_skipped(self._topic)
            logger.error("command skipped", extra={"offset": offset, "reason": str(invalid)})
            return None
        progress.open(offset, command.id)
        return partition, offset, command

    def _read_progress(self, partitions: list[int]) -> dict[int, CommandProgress]:
        """Return how far the owners before this one have come."""
        asked = [TopicPartition(self._topic, partition) for partition in partitions]
        try:
            committed = self._consumer.committed(asked, timeout=ANSWER_TIMEOUT_S)
        except KafkaException as error:
            raise Retryable(f"topic {self._topic}: {error.args[0].str()}") from error
        return {
            at.partition: CommandProgress(max(at.offset, 0), at.metadata or "") for at in committed
        }

    def _seek(self, partition: int, offset: int) -> None:
        try:
            self._consumer.seek(TopicPartition(self._topic, partition, offset))
        except KafkaException as error:
            raise Retryable(f"topic {self._topic}: {error.args[0].str()}") from error

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._assigned += [p.partition for p in partitions]
        self._membership.joined()

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        lost = [p.partition for p in partitions]
        self._assigned = [partition for partition in self._assigned if partition not in lost]
        self._early = None
        if self._current is not None and self._current[0] in lost:
            self._current = None
        for partition in lost:
            self._progress.pop(partition, None)
            self._committed.pop(partition, None)
        self._membership.left()
        self._release(lost)
