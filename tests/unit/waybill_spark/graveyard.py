"""A bench whose rows are the offsets of their records, some of which a stage cannot process."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame

from unit.waybill_spark.bench import TOPIC, Bench, ListSink
from waybill_shared.contract.events import Fence
from waybill_shared.contract.words import DeadReason
from waybill_spark.tracking.batch_rows import BatchRows
from waybill_spark.tracking.dead_letters.records import (
    NOTHING,
    DeadCause,
    DeadLetterRecord,
    FailingRecord,
    QueryFailed,
    RawRecord,
    RejectedRecord,
    Without,
    merge_positions,
    positions_of,
)
from waybill_spark.tracking.pieces import Ranges, offsets
from waybill_spark.tracking.sink import RowsRefused, Written

PLACE = (TOPIC, 0)


@dataclass
class PickySink(ListSink):
    """Takes no row with a number in `refusing`, and of those in one of `clashing` not all."""

    refusing: set[int] = field(default_factory=set)
    clashing: tuple[set[int], ...] = ()

    def write(self, rows: Iterable[pa.RecordBatch] | None, fence: Fence) -> Written:
        taken = list(rows or ())
        said = self.find_refusal(taken)
        if said is not None:
            raise RowsRefused(said, hint="")
        return super().write(taken, fence)

    def find_refusal(self, rows: Iterable[pa.RecordBatch]) -> str | None:
        numbers = [n for batch in rows for n in batch.column("n").to_pylist()]
        bad = sorted(self.refusing.intersection(numbers))
        bad += [
            max(each, default=-1) for each in self.clashing if each <= {*numbers, *self.numbers}
        ]
        return f"{bad} are refused" if bad else None


@dataclass
class Graveyard(Bench):
    """`malformed` do not fit the schema, at `failing` the query ends; what is `gone` was read, and
    is not in its topic any more."""

    first: ListSink = field(default_factory=lambda: PickySink("first"))
    second: ListSink = field(default_factory=lambda: PickySink("second"))
    malformed: set[int] = field(default_factory=set)
    failing: set[int] = field(default_factory=set)
    gone: set[int] = field(default_factory=set)
    plans_up_to: int = 0
    """So many records are planned at once; 0: never."""
    missed: set[int] = field(default_factory=set)
    """Those of `failing` that pass when they are planned."""
    reading: Ranges = ()

    def buried(self) -> list[tuple[int, str, str | None]]:
        return [
            (each.record.offset, each.cause.reason, each.cause.sink) for each in self.journal.buried
        ]

    def plan(self, batch_id: int, end: int, *, start: int = 0) -> None:
        super().plan(batch_id, end, start=start)
        self.planned = end

    def read(self, ranges: Ranges, without: Without) -> BatchRows:
        self.read_again.append(ranges)
        return self._give(ranges, without)

    def plan_records(self, ranges: Ranges, without: Without) -> "GravePlan | None":
        return GravePlan(self, without) if offsets(ranges) <= self.plans_up_to else None

    def dead(self, rejected: Sequence[RejectedRecord]) -> tuple[DeadLetterRecord, ...]:
        death = DeadCause(reason=DeadReason.MALFORMED, message="no number")
        return tuple(
            DeadLetterRecord(record=record, cause=death)
            for record in self.raw(positions_of(rejected))
        )

    def raw(self, positions: Without) -> tuple[RawRecord, ...]:
        there = positions.get(PLACE, frozenset()) - self.gone
        return tuple(_record(offset) for offset in sorted(there))

    def _rows(self, frame: DataFrame) -> BatchRows:
        """As the query gives it: all of the batch."""
        return self._give(self.reading, NOTHING)

    def pieces(self, ranges: Ranges) -> tuple[Ranges, ...]:
        self.reading = ranges
        return super().pieces(ranges)

    def _give(self, ranges: Ranges, without: Without) -> BatchRows:
        self.reads += 1
        offsets = list(_offsets(ranges, without))
        poison = sorted(self.failing.intersection(offsets))
        if poison:
            raise QueryFailed("division by zero", "ArithmeticException")
        rows = pa.table({"n": [o for o in offsets if o not in self.malformed]})
        dead = [
            RejectedRecord(topic=TOPIC, partition=0, offset=offset, verdict=0)
            for offset in offsets
            if offset in self.malformed
        ]
        return BatchRows({"first": rows, "second": rows}, dead=dead)


@dataclass
class GravePlan:
    of: Graveyard
    known: Without

    def check(self, ranges: Ranges, without: Without) -> None:
        bad = self.of.failing - self.of.missed
        if bad.intersection(_offsets(ranges, merge_positions(self.known, without))):
            raise QueryFailed("division by zero", "ArithmeticException")

    def find_failing(self, ranges: Ranges, without: Without) -> Iterator[FailingRecord]:
        wanted = [*_offsets(ranges, merge_positions(self.known, without))]
        for number, offset in enumerate(wanted):
            if offset in self.of.failing - self.of.missed:
                why = QueryFailed("division by zero", "ArithmeticException")
                left = len(wanted) - number
                yield FailingRecord(place=(*PLACE, offset), why=why, left=left)

    def read(self, ranges: Ranges, without: Without) -> BatchRows:
        self.check(ranges, without)
        left = _offsets(ranges, merge_positions(self.known, without))
        rows = pa.table({"n": [o for o in left if o not in self.of.malformed]})
        return BatchRows({"first": rows, "second": rows})


def _count(ranges: Ranges) -> int:
    return sum(run.end - run.start for run in ranges)


def _offsets(ranges: Ranges, without: Without) -> Iterator[int]:
    for run in ranges:
        left_out = without.get((run.topic, run.partition), frozenset())
        yield from (o for o in range(run.start, run.end) if o not in left_out)


def _record(offset: int) -> RawRecord:
    value = str(offset).encode()
    return RawRecord(topic=TOPIC, partition=0, offset=offset, key=b"k", value=value)
