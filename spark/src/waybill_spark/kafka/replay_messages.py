"""Reads the messages of one pipeline in `waybill.replays`, each once.

No consumer is kept for it: nearly always there is nothing. The end of the partition is asked for,
and only what is new is read.
"""

import logging
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Final

from waybill_shared.contract import codec
from waybill_shared.contract.errors import InvalidMessage, Retryable
from waybill_shared.contract.replays import LetterReplay, ReplayMessage
from waybill_shared.contract.vectors import ENDLESS, TopicPartition, Vector
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.clients import position_of, read_ranges
from waybill_shared.kafka.partitioner import partition_of
from waybill_spark.kafka.topic_ids import sure_ids
from waybill_spark.tracking.replaying import Letter, Replays

logger = logging.getLogger(__name__)

AT_ONCE: Final = 10_000  # letters: about 10 MB


@dataclass
class ReplayMessages:
    """`topic` is the full name, `key` that of the pipeline. One thread at a time is in here."""

    admin: KafkaAdmin
    topic: str
    key: str
    absent_s: float
    _topic_id: str = field(default="", init=False)
    _partition: int = field(default=0, init=False)
    _next: int = field(default=0, init=False)

    def start(self, replayed: Iterable[Vector]) -> Replays:
        """Start where the sink is that has done the fewest. Return no letters, but which partition
        is read, and which ones are gone. Raise Retryable.
        """
        sinks = [*replayed]
        identity = self.admin.identify([self.topic]).get(self.topic)
        if identity is None:
            raise Retryable(f"topic {self.topic}: a broker does not know it")
        self._topic_id = identity.topic_id
        self._partition = partition_of(self.key, len(identity.partitions))
        place = (self._topic_id, self._partition)
        known = min((each.get(place, 0) for each in sinks), default=0)
        first = self.admin.starts(self.topic, [self._partition])[self._partition]
        self._next = max(known, first)
        return self._make([], 0, gone=self._find_gone(sinks))

    def read(self) -> Replays | None:
        """Return what is new, at most `AT_ONCE` letters; None if nothing of the pipeline is. Raise
        Retryable, and then the same is read again.
        """
        place = self._partition
        end = self.admin.stable_ends(self.topic, [place])[place]
        if end <= self._next:
            return None
        letters: list[Letter] = []
        ranges = {place: (self._next, end)}
        with closing(read_ranges(self.admin.cluster, self.topic, ranges)) as messages:
            for message in messages:
                asked = self._decode(message.value()) if self._is_mine(message.key()) else None
                if asked is not None:
                    letters.append(Letter(offset=position_of(message)[1], asked=asked))
                if len(letters) == AT_ONCE:
                    end = letters[-1].offset + 1
                    break
        self._check_topic()
        self._next = end
        return self._make(letters, letters[-1].offset + 1) if letters else None

    def find(self, topic_id: str, partition: int, offset: int) -> LetterReplay | None:
        """Return what one message of the pipeline asks for; None if there is no such one. Raise
        Retryable.
        """
        first = self.admin.starts(self.topic, [partition])[partition]
        end = self.admin.stable_ends(self.topic, [partition])[partition]
        ranges = {partition: (offset, offset + 1)} if first <= offset < end else {}
        with closing(read_ranges(self.admin.cluster, self.topic, ranges)) as messages:
            found = [self._decode(m.value()) for m in messages if self._is_mine(m.key())]
        sure = sure_ids(self.admin, {self.topic: topic_id}, absent_s=self.absent_s)
        return found[0] if found and sure.get(self.topic) == topic_id else None

    def _make(
        self, letters: list[Letter], end: int, gone: Sequence[TopicPartition] = ()
    ) -> Replays:
        return Replays(
            topic=self.topic,
            topic_id=self._topic_id,
            partition=self._partition,
            letters=letters,
            end=end,
            gone=gone,
        )

    def _find_gone(self, sinks: Iterable[Vector]) -> list[TopicPartition]:
        """Return the partitions of earlier topics that are not set aside in all sinks."""
        gone = {
            place
            for each in sinks
            for place, end in each.items()
            if place[0] != self._topic_id and end < ENDLESS
        }
        for topic_id in {each for each, _ in gone}:
            sure = sure_ids(self.admin, {self.topic: topic_id}, absent_s=self.absent_s)
            if sure.get(self.topic) != self._topic_id:
                raise Retryable(f"topic {self.topic}: it is not sure which one it is")
        return sorted(gone)

    def _is_mine(self, key: str | bytes | None) -> bool:
        return key == self.key.encode()

    def _decode(self, value: bytes | None) -> LetterReplay | None:
        """Return the letter; None if it is another message, or one that nobody can read."""
        try:
            body = codec.decode(ReplayMessage, value or b"").body
        except InvalidMessage as error:
            logger.error("message skipped", extra={"topic": self.topic, "reason": str(error)})
            return None
        return body if isinstance(body, LetterReplay) else None

    def _check_topic(self) -> None:
        identity = self.admin.identify([self.topic]).get(self.topic)
        if identity is None or identity.topic_id != self._topic_id:
            raise Retryable(f"topic {self.topic} is another one now, or a broker does not know it")
