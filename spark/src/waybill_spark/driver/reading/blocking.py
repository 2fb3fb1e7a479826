"""Finds out whether a stage waits for somebody's open transaction on a topic that it reads.

A reader of committed records comes to a stop where the first open transaction begins. Ours on the
topics between stages are open for a moment too, so only a stop that lasts counts.
"""

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.vectors import Vector
from waybill_shared.contract.words import Obstacle
from waybill_shared.kafka.admin_answers import TopicIdentity
from waybill_spark.driver.reading.backlogs import Backlogs
from waybill_spark.tracking.fencing import StageInput

logger = logging.getLogger(__name__)

LOOK_INTERVAL_S: Final = 1.0
LASTS_S: Final = 2.0  # many times what a transaction of a batch takes


class Offsets(Protocol):
    """The knowledge of a broker about topics; each call raises Retryable."""

    def identify(self, topics: Iterable[str]) -> Mapping[str, TopicIdentity]: ...

    def stable_ends(self, topic: str, partitions: Iterable[int]) -> Mapping[int, int]: ...

    def ends(self, topic: str, partitions: Iterable[int]) -> Mapping[int, int]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A topic as one stage reads it; its next batch begins at `frontier`, or after it."""

    stage: str
    topic: str
    topic_id: str
    frontier: Mapping[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class StagePartition:
    """A partition as one stage reads it."""

    stage: str
    topic: str
    partition: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StuckOffset:
    """The offset at which a stage cannot read on, and since when it has been seen there."""

    offset: int
    since_s: float


def readings(
    stage: str, inputs: Iterable[StageInput], frontiers: Iterable[Vector]
) -> tuple[Reading, ...]:
    """Return what each stage reads, with its frontier.

    `frontiers`: where the next batch of each sink begins.
    """
    vectors = tuple(frontiers)
    return tuple(
        Reading(
            stage=stage,
            topic=source.topic,
            topic_id=source.topic_id,
            frontier=_lowest(source.topic_id, vectors),
        )
        for source in inputs
    )


def stops(
    frontier: Mapping[int, int], stable: Mapping[int, int], ends: Mapping[int, int]
) -> dict[int, int]:
    """Return where everything readable is processed and yet more is written, by partition."""
    return {
        partition: offset
        for partition, offset in stable.items()
        if frontier.get(partition, 0) >= offset and ends.get(partition, offset) > offset
    }


def find_lasting(
    before: Mapping[StagePartition, StuckOffset], found: Mapping[StagePartition, int], now_s: float
) -> dict[StagePartition, StuckOffset]:
    """Return the stops of now, each with the time at which it was first found at this offset."""
    return {
        place: stop
        if (stop := before.get(place)) is not None and stop.offset == offset
        else StuckOffset(offset=offset, since_s=now_s)
        for place, offset in found.items()
    }


class OpenTransactions:
    """Remembers from look to look; asks the broker only of topics in which nothing moves."""

    def __init__(self, offsets: Offsets, *, now_s: Callable[[], float] = time.monotonic) -> None:
        self._offsets = offsets
        self._now_s = now_s
        self._look_at_s = now_s()
        self._frontiers: dict[tuple[str, str], Mapping[int, int]] = {}
        self._stops: dict[StagePartition, StuckOffset] = {}
        self._blocked: Obstacle | None = None
        self.backlogs = Backlogs(now_s)
        """Of the stages in which nothing moves."""

    def look(self, stages: Iterable[Reading]) -> Obstacle | None:
        """Return BLOCKED_BY_OPEN_TRANSACTION if a stage waits for one, else None.

        May be called at any rate; between looks, and while Kafka is away, it returns the last
        answer.
        """
        now_s = self._now_s()
        if now_s >= self._look_at_s:
            self._look_at_s = now_s + LOOK_INTERVAL_S
            try:
                self._look(tuple(stages), now_s)
            except Retryable as error:
                logger.warning("open transactions are not looked for", extra={"reason": str(error)})
        return self._blocked

    def _look(self, stages: tuple[Reading, ...], now_s: float) -> None:
        at_rest = [reading for reading in stages if self._rests(reading)]
        lags = dict.fromkeys((reading.stage for reading in at_rest), 0)
        found: dict[StagePartition, int] = {}
        for reading in at_rest:
            stable = self._stable_ends(reading)
            lags[reading.stage] += _lag(reading, stable)
            for partition, offset in self._find_stuck(reading, stable).items():
                place = StagePartition(
                    stage=reading.stage, topic=reading.topic, partition=partition
                )
                found[place] = offset
        self._note_backlogs(stages, at_rest, lags)
        self._stops = find_lasting(self._stops, found, now_s)
        self._conclude({p: s for p, s in self._stops.items() if now_s - s.since_s >= LASTS_S})

    def _rests(self, reading: Reading) -> bool:
        """Return True if nothing was processed since the last look."""
        key = (reading.stage, reading.topic)
        before = self._frontiers.get(key)
        self._frontiers[key] = reading.frontier
        return before == reading.frontier

    def _note_backlogs(
        self, stages: Iterable[Reading], at_rest: Sequence[Reading], lags: Mapping[str, int]
    ) -> None:
        moving = {reading.stage for reading in stages if reading not in at_rest}
        names = {reading.stage for reading in stages}
        self.backlogs.note({name: n for name, n in lags.items() if name not in moving}, names)

    def _stable_ends(self, reading: Reading) -> Mapping[int, int]:
        identity = self._offsets.identify([reading.topic]).get(reading.topic)
        if identity is None or identity.topic_id != reading.topic_id:
            return {}  # what becomes of a deleted topic is not decided here
        return self._offsets.stable_ends(reading.topic, identity.partitions)

    def _find_stuck(self, reading: Reading, stable: Mapping[int, int]) -> dict[int, int]:
        processed = [p for p, offset in stable.items() if reading.frontier.get(p, 0) >= offset]
        ends = self._offsets.ends(reading.topic, processed) if processed else {}
        return stops(reading.frontier, stable, ends)

    def _conclude(self, waits: Mapping[StagePartition, StuckOffset]) -> None:
        blocked = Obstacle.BLOCKED_BY_OPEN_TRANSACTION if waits else None
        if blocked != self._blocked:
            places = {f"{p.topic}[{p.partition}]": stop.offset for p, stop in waits.items()}
            text = (
                "a stage waits for an open transaction" if waits else "no transaction is waited for"
            )
            logger.warning(text, extra={"begins_at": places})
        self._blocked = blocked


def _lag(reading: Reading, stable: Mapping[int, int]) -> int:
    """Return how many offsets the stage may read and has not processed."""
    return sum(max(0, end - reading.frontier.get(p, 0)) for p, end in stable.items())


def _lowest(topic_id: str, frontiers: tuple[Vector, ...]) -> dict[int, int]:
    """Return the lowest offsets of all sinks.

    A sink that does not name a partition has nothing of it.
    """
    partitions = {p for vector in frontiers for of, p in vector if of == topic_id}
    return {p: min(vector.get((topic_id, p), 0) for vector in frontiers) for p in partitions}
