"""Brings dead letters into the sinks that lack their records: a batch *at rest*.

A letter is replayed by a message of `waybill.replays`, which names a stage and its sinks. For each
stage the driver has the messages in their order, and the positions of these messages are what a
replay reads, as a batch reads the offsets of an input. This happens, outside of the query:

1. `in_batches` makes runs of letters that go into the same sinks, and `in_parts` cuts them where a
   sink has a part already: a driver died between two sinks, or read fewer messages.
2. The records are read from their dead-letter topics. What is not there any more is set aside.
3. `BatchWriter` does what it does for each batch: `Triage` judges the records, those that die again
   are written to the journal, and the sinks that lack the run are loaded. The fence of each moves
   in the step that writes the rows; only its `replayed` moves, to the end of the run.
4. A sink that no letter names passes them without a move of its fence.

Before its first letter, a driver has each sink note the topic that it reads, and set aside what is
left of one that was there before: `waybill.replays` was created again.

So a letter is in a sink if and only if the fence there is past its message. `frontier` and
`position` stay: no batch is repeated or left out because of a replay.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final, Protocol

from waybill_shared.contract.batches import planned
from waybill_shared.contract.events import Range, SetAside
from waybill_shared.contract.replays import LetterReplay
from waybill_shared.contract.vectors import ENDLESS, TopicPartition
from waybill_shared.contract.words import LossReason, StopReason
from waybill_shared.process.clock import Clock
from waybill_spark.tracking.batch import NO_BATCH, Batch
from waybill_spark.tracking.batch_rows import BatchRows
from waybill_spark.tracking.batch_writer import BatchWriter
from waybill_spark.tracking.dead_letters.records import (
    DeadLetterRecord,
    Place,
    RawRecord,
    RejectedRecord,
    ReplayedAt,
    Without,
)
from waybill_spark.tracking.ledger import Ledger
from waybill_spark.tracking.pieces import Ranges, ends_of, in_parts
from waybill_spark.tracking.ports import PlannedRecords
from waybill_spark.tracking.rewinding import Replacing
from waybill_spark.tracking.stopping import StageStopped

logger = logging.getLogger(__name__)

LETTERS_MAX: Final = 1_000  # of one batch: a search plans so many at once
BYTES_MAX: Final = 32_000_000  # of the records of a batch, which the driver keeps in memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """A letter to replay, and the offset of its message."""

    offset: int
    asked: LetterReplay


@dataclass(frozen=True, slots=True, kw_only=True)
class Replays:
    """Messages of one partition of `waybill.replays`: those of a stage, of all below `end`. `gone`:
    the partition in earlier topics of that name, with requests that may not be done.
    """

    topic: str
    topic_id: str
    partition: int
    letters: Sequence[Letter]
    end: int
    gone: Sequence[TopicPartition] = ()

    @property
    def place(self) -> TopicPartition:
        return (self.topic_id, self.partition)


class LetterReadings(Protocol):
    """Records of letters, read and processed outside of a query. Each call raises Retryable."""

    def find(self, letters: Sequence[LetterReplay]) -> Sequence[RawRecord | None]:
        """Return the record of each letter as it was when it died; None if it is not there."""

    def rows(self, records: Sequence[RawRecord]) -> BatchRows:
        """Return the rows of these records. Raise QueryFailed if a value ends the query."""

    def plan_records(self, records: Sequence[RawRecord]) -> PlannedRecords | None:
        """Return these for a search, by their `place`; None if rows of one depend on others."""

    def die(self, record: RawRecord, verdict: int) -> DeadLetterRecord:
        """Return the record with the reason for the verdict."""


class Replaying:
    """Replays of one stage. Callers see to it that no batch runs meanwhile."""

    def __init__(
        self,
        writer: BatchWriter,
        readings: LetterReadings,
        replacing: Mapping[str, Replacing],
        clock: Clock,
    ) -> None:
        self._writer = writer
        self._readings = readings
        self._replacing = replacing
        self._clock = clock

    def run(self, replays: Replays) -> None:
        """Bring each letter to the sinks that lack it. Raise StageStopped if one cannot get it."""
        for ledger in self._writer.ledgers if replays.gone else ():
            _set_gone_aside(ledger, replays)
        for letters in in_batches(replays.letters):
            run = Range(
                topic=replays.topic,
                topic_id=replays.topic_id,
                partition=replays.partition,
                start=letters[0].offset,
                end=letters[-1].offset + 1,
            )
            named = find_named(self._writer.ledgers, letters[0])
            for part in in_parts((run,), [each.replayed for each in named]):
                into = [each for each in named if _lacks(each, part)]
                if into:
                    self._refuse_replacing(into)
                    self._write(part, letters, into)
        for ledger in self._writer.ledgers:
            ledger.pass_replays({replays.place: replays.end})

    def _write(self, part: Ranges, letters: Sequence[Letter], into: Sequence[Ledger]) -> None:
        (run,) = part
        mine = [each for each in letters if run.start <= each.offset < run.end]
        found = self._readings.find([each.asked for each in mine])
        records = [
            None if record is None else _among_replays(record, run, letter)
            for letter, record in zip(mine, found, strict=True)
        ]
        for piece, there in _by_presence(run, mine, records):
            if there:
                self._bring(piece, there, into)
                continue
            aside = SetAside(reason=LossReason.RETENTION_PASSED, ranges=(piece,))
            for ledger in into:
                ledger.set_aside((aside,), of_replays=True)

    def _bring(self, piece: Range, records: Sequence[RawRecord], into: Sequence[Ledger]) -> None:
        at = f"{piece.topic}[{piece.partition}] {piece.start} to {piece.end - 1}"
        logger.info("letters are replayed", extra={"stage": self._writer.stage, "messages": at})
        report = planned(NO_BATCH, "", self._clock.now_ms())
        batch = Batch(report=report, runs=(piece,), for_one_sink=True, of_replays=True)
        with self._writer.triage.read_from(_AmongReplays(records, self._readings)):
            self._writer.write(batch, into)

    def _refuse_replacing(self, into: Sequence[Ledger]) -> None:
        for ledger in into:
            if self._replacing.get(ledger.sink.name) is Replacing.BY_BATCH:
                detail = (
                    f"stage {self._writer.stage} is to replay dead letters, and its sink"
                    f" {ledger.sink.name} would contain nothing else then"
                )
                hint = "apply the manifest of before, with which they were asked for"
                raise StageStopped(StopReason.REPLACES_ROWS, detail, hint)


def find_named(ledgers: Iterable[Ledger], letter: Letter) -> list[Ledger]:
    """Return the sinks that a letter names, without those that the stage no longer has."""
    return [ledger for ledger in ledgers if ledger.key in letter.asked.sinks]


def in_batches(letters: Sequence[Letter]) -> Iterator[Sequence[Letter]]:
    """Yield runs of letters that go into the same sinks. No two of one run are of the same place: a
    topic that was created again has other records at its offsets.
    """
    for _, same in groupby(letters, key=lambda each: frozenset(each.asked.sinks)):
        batch: list[Letter] = []
        places: set[Place] = set()
        size = 0
        for letter in same:
            place = _place_of(letter.asked)
            size += letter.asked.size
            if batch and (len(batch) == LETTERS_MAX or size > BYTES_MAX or place in places):
                yield batch
                batch, places, size = [], set(), letter.asked.size
            batch.append(letter)
            places.add(place)
        yield batch


def _set_gone_aside(ledger: Ledger, replays: Replays) -> None:
    done = {place: ledger.replayed.get(place, 0) for place in replays.gone}
    rest = tuple(
        Range(topic=replays.topic, topic_id=place[0], partition=place[1], start=end, end=ENDLESS)
        for place, end in done.items()
        if end < ENDLESS
    )
    if rest:
        ledger.pass_replays({replays.place: 0})
        aside = SetAside(reason=LossReason.TOPIC_RECREATED, ranges=rest)
        ledger.set_aside((aside,), of_replays=True)


def _lacks(ledger: Ledger, part: Ranges) -> bool:
    return any(ledger.replayed.get(place, 0) < end for place, end in ends_of([part]).items())


def _place_of(asked: LetterReplay) -> Place:
    return (asked.topic, asked.partition, asked.letter.source)


def _among_replays(record: RawRecord, run: Range, letter: Letter) -> RawRecord:
    at = ReplayedAt(
        topic=run.topic,
        topic_id=run.topic_id,
        partition=run.partition,
        offset=letter.offset,
        source_id=letter.asked.topic_id,
    )
    return replace(record, replayed=at)


def _by_presence(
    run: Range, letters: Sequence[Letter], records: Sequence[RawRecord | None]
) -> Iterator[tuple[Range, list[RawRecord]]]:
    """Cut the run where records that are there follow others that are not, or the other way round.
    Yield each part with its records: none if they are not there.
    """
    parts: list[tuple[int, list[RawRecord]]] = []
    for letter, record in zip(letters, records, strict=True):
        if not parts:
            parts.append((run.start, []))
        elif bool(parts[-1][1]) is (record is None):
            parts.append((letter.offset, []))
        parts[-1][1].extend([] if record is None else [record])
    ends = [start for start, _ in parts[1:]] + [run.end]
    for (start, there), end in zip(parts, ends, strict=True):
        yield replace(run, start=start, end=end), there


class _AmongReplays:
    """The records of a run, at the offsets of their messages. Fulfils `Readings`."""

    def __init__(self, records: Sequence[RawRecord], readings: LetterReadings) -> None:
        self._records = records
        self._readings = readings
        self._by_source = {(each.topic, each.partition, each.offset): each for each in records}
        self._by_place = {each.place: each for each in records}

    def read(self, ranges: Ranges, without: Without) -> BatchRows:
        rows = self._readings.rows(self._find(ranges, without))
        return replace(rows, dead=[self._move(each) for each in rows.dead])

    def plan_records(self, ranges: Ranges, without: Without) -> PlannedRecords | None:
        return self._readings.plan_records(self._find(ranges, without))

    def dead(self, rejected: Sequence[RejectedRecord]) -> tuple[DeadLetterRecord, ...]:
        die = self._readings.die
        return tuple(die(self._by_place[each.place], each.verdict) for each in rejected)

    def raw(self, positions: Without) -> tuple[RawRecord, ...]:
        return tuple(
            each
            for each in self._records
            for topic, partition, offset in [each.place]
            if offset in positions.get((topic, partition), ())
        )

    def _find(self, ranges: Ranges, without: Without) -> list[RawRecord]:
        return [
            each
            for each in self._records
            for topic, partition, offset in [each.place]
            if any(run.start <= offset < run.end for run in ranges)
            and offset not in without.get((topic, partition), ())
        ]

    def _move(self, rejected: RejectedRecord) -> RejectedRecord:
        """Return it at the offset of its message: the query has seen where its record died."""
        topic, partition, offset = self._by_source[rejected.place].place
        return replace(rejected, topic=topic, partition=partition, offset=offset)
