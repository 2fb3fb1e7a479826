"""A checkpoint in a folder, two sinks of plain Python, and topics that a test may change."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
from pyspark.sql import DataFrame

from sim.loads import SimLoads
from waybill_shared.contract.dead_letter_facts import DeadPositions
from waybill_shared.contract.dead_letter_requests import DeadLetterRequest
from waybill_shared.contract.driver_news import TableMaintenance
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.events import Commit, Fence, Range
from waybill_shared.contract.vectors import Vector
from waybill_spark.tracking.batch_rows import BatchRows
from waybill_spark.tracking.checkpoint import Checkpoint
from waybill_spark.tracking.commits import Identity
from waybill_spark.tracking.dead_letters.budget import Budget
from waybill_spark.tracking.dead_letters.records import (
    DeadLetterRecord,
    RawRecord,
    RejectedRecord,
    Without,
)
from waybill_spark.tracking.fencing import LaterSink, StageInput
from waybill_spark.tracking.local_files import LocalFiles
from waybill_spark.tracking.pieces import Ranges, in_pieces
from waybill_spark.tracking.rewinding import Replacing, Rewind
from waybill_spark.tracking.sink import SinkSuperseded, Written
from waybill_spark.tracking.stage import TrackedStage
from waybill_spark.tracking.stopping import StageStopped

NO_FRAME = cast(DataFrame, None)  # only handed on to `to_rows`, which is a fake here
TOPIC = "orders.in"


def run_of(start: int, end: int, topic_id: str = "T1", partition: int = 0) -> Range:
    return Range(topic=TOPIC, topic_id=topic_id, partition=partition, start=start, end=end)


@dataclass
class ListSink:
    """Keeps what was written; fails once before the batch with a number in `failing`."""

    name: str
    fences: list[Fence] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    failing: set[int] = field(default_factory=set)
    hidden: bool = False
    gone: StageStopped | None = None
    since: int = 1
    key: str = ""
    moved: int = 0
    untouched: int = 0  # how often only the fence moved

    def claim(self) -> None:
        pass

    def last(self) -> Written | None:
        version = {"v": str(len(self.fences))}
        return Written(fence=self.fences[-1], version=version) if self.fences else None

    def write(self, rows: Iterable[pa.RecordBatch] | None, fence: Fence) -> Written:
        if fence.batch.sequence in self.failing:
            self.failing.remove(fence.batch.sequence)
            raise Retryable("the sink is away")
        self.fences.append(fence)
        self.untouched += rows is None
        for batch in rows or ():
            self.numbers += batch.column("n").to_pylist()
        return Written(fence=fence, version={"v": str(len(self.fences))})

    def find_refusal(self, rows: Iterable[pa.RecordBatch]) -> str | None:
        return None

    def await_visible(self, fence: Fence) -> bool:
        if self.gone is not None:
            raise self.gone
        return not self.hidden

    def close(self) -> None:
        pass

    @property
    def rows(self) -> int:
        return len(self.numbers)

    @property
    def ranges(self) -> list[tuple[int, int]]:
        return [(run.start, run.end) for fence in self.fences for run in fence.inputs]

    @property
    def end(self) -> int:
        return next(iter(self.fences[-1].frontier.values()))


@dataclass
class ListWriter:
    """One driver's hand on a sink: refused, as by a table, when another has moved the fence."""

    sink: ListSink
    seen: int = 0

    def __post_init__(self) -> None:
        self.key, self.name = self.sink.key, self.sink.name
        self.since, self.moved = self.sink.since, self.sink.moved

    def claim(self) -> None:
        self.sink.claim()
        self.seen = len(self.sink.fences)

    def last(self) -> Written | None:
        self.seen = len(self.sink.fences)
        return self.sink.last()

    def write(self, rows: Iterable[pa.RecordBatch] | None, fence: Fence) -> Written:
        if self.seen != len(self.sink.fences):
            raise SinkSuperseded(f"sink {self.name}: its fence was moved by another")
        written = self.sink.write(rows, fence)
        self.seen += 1
        return written

    def find_refusal(self, rows: Iterable[pa.RecordBatch]) -> str | None:
        return self.sink.find_refusal(rows)

    def await_visible(self, fence: Fence) -> bool:
        return self.sink.await_visible(fence)

    def close(self) -> None:
        self.sink.close()


@dataclass
class ListJournal:
    """Keeps what was buried; a newer claim shuts out the one before. `dying`: it ends before."""

    fences: list[Fence] = field(default_factory=list)
    buried: list[DeadLetterRecord] = field(default_factory=list)
    owner: int = 0
    dying: bool = False

    def write(self, records: Sequence[DeadLetterRecord], fence: Fence) -> Fence:
        if self.dying:
            raise Retryable("it dies here")
        moved = fence.batch.sequence if records else fence.batch.sequence - 1
        fence = replace(fence, batch=replace(fence.batch, sequence=moved))
        self.fences.append(fence)
        self.buried += records
        return fence


@dataclass
class JournalHand:
    """One driver's hand on the journal."""

    journal: ListJournal
    claimed: int = 0

    def claim(self) -> None:
        self.journal.owner += 1
        self.claimed = self.journal.owner

    def last(self) -> Fence | None:
        return self.journal.fences[-1] if self.journal.fences else None

    def past(self, starts: Vector) -> tuple[DeadPositions, ...]:
        ids = {TOPIC: next(iter(starts))[0]}
        return tuple(
            DeadPositions(
                topic_id=topic_id,
                partition=partition,
                offsets=(offset,),
                sink=dead.cause.sink,
            )
            for dead in self.journal.buried
            for _, partition, offset in [dead.record.place]
            for at in [dead.record.replayed]
            for topic_id in [ids[dead.record.topic] if at is None else at.topic_id]
            if offset >= starts.get((topic_id, partition), offset + 1)
        )

    def write(self, records: Sequence[DeadLetterRecord], fence: Fence) -> Fence:
        if self.claimed != self.journal.owner:
            raise SinkSuperseded("the journal has a newer owner")
        return self.journal.write(records, fence)

    def close(self) -> None:
        pass


@dataclass
class Bench:
    """Every stage that is started here is a new driver on the same checkpoint and sinks."""

    folder: Path
    first: ListSink = field(default_factory=lambda: ListSink("first"))
    second: ListSink = field(default_factory=lambda: ListSink("second"))
    commits: list[Commit] = field(default_factory=list)
    kept: list[TableMaintenance] = field(default_factory=list)
    topic_id: str | None = "T1"
    log_start: int = 0
    retired: tuple[str, ...] = ()
    generation: int = 1
    later: dict[str, LaterSink] = field(default_factory=dict)
    sinks: tuple[str, ...] = ("first", "second")
    offsets_max: int = 100
    bytes_max: int = 100
    replaces: bool = False  # whether a batch of the stage erases the one before
    has_state: bool = False
    empty: bool = False  # whether a batch gives no rows
    markers: bool = False  # whether no reader finds a record where it is
    sizes: dict[int, int] = field(default_factory=dict)  # of more than one byte, by offset
    lifecycle_id: str = "L1"
    rewind: Rewind | None = None
    asked: tuple[DeadLetterRequest, ...] = ()
    replacing: Mapping[str, Replacing] = field(default_factory=dict)
    claims: int = 0
    reads: int = 0
    read_again: list[tuple[Range, ...]] = field(default_factory=list)
    sure_above: list[Mapping[int, int]] = field(default_factory=list)  # what `starts` got
    journal: ListJournal = field(default_factory=ListJournal)
    budget: Budget = field(default_factory=lambda: Budget(100, 60_000))

    def claim(self) -> Identity:
        """Of the next driver: its claim stands behind all that were before it."""
        self.claims += 1
        own = Identity(tenant="t", pipeline_uid="u", generation=self.generation, epoch=self.claims)
        return replace(own, lifecycle_id=self.lifecycle_id)

    def stage(
        self, *, reads: str = "T1", identity: Identity | None = None
    ) -> TrackedStage[DataFrame]:
        """As after a start of the driver, before its query; `reads` is the id in its definition."""
        self.commits.clear()
        source = StageInput(
            name="orders", topic=TOPIC, topic_id=reads, bases={0: 0}, retired=self.retired
        )
        stage = TrackedStage(
            "load",
            identity=identity or self.claim(),
            inputs=(source,),
            sinks=tuple(ListWriter(s) for s in (self.first, self.second) if s.name in self.sinks),
            later=self.later,
            checkpoint=Checkpoint(LocalFiles(self.folder)),
            source=self,
            offsets_max=self.offsets_max,
            to_rows=self._rows,
            journal=JournalHand(self.journal),
            budget=self.budget,
            loads=SimLoads(lambda count: 0),  # one after the other
            emit=self.commits.append,
            report_maintenance=self.kept.append,
            clock=self,
            has_state=self.has_state,
            rewinds=() if self.rewind is None else (self.rewind,),
            dead_letters=self.asked,
            replacing=self.replacing,
        )
        stage.open()
        return stage

    def started(self, *, reads: str = "T1") -> Vector:
        """Where a new query would begin; empty: where the checkpoint stands."""
        stage = self.stage(reads=reads)
        stage.report_losses()
        return stage.resume()

    def plan(self, batch_id: int, end: int, *, start: int = 0) -> None:
        """Spark has decided that the batch ends here."""
        for name in ("offsets", "sources/0"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        (self.folder / "metadata").write_text('{"id": "lineage-1"}')
        (self.folder / "sources/0/0").write_text(f'v1\n{{"{TOPIC}":{{"0":{start}}}}}')
        ends = json.dumps({TOPIC: {"0": end}})
        (self.folder / "offsets" / str(batch_id)).write_text(f"v1\n{{}}\n{ends}")

    def run(self, batch_id: int, end: int) -> None:
        """A batch from its plan to Spark's own commit."""
        self.plan(batch_id, end)
        self.stage().process(NO_FRAME, batch_id)
        (self.folder / "commits").mkdir(exist_ok=True)
        (self.folder / "commits" / str(batch_id)).write_text("v1\n{}")

    def now_ms(self) -> int:
        return 5

    def ids(self, wanted: Mapping[str, str]) -> Mapping[str, str]:
        return {} if self.topic_id is None else {TOPIC: self.topic_id}

    def starts(self, topic: str, held: Mapping[int, int]) -> Mapping[int, int]:
        self.sure_above.append(held)
        return {0: self.log_start}

    def pieces(self, ranges: Ranges) -> tuple[Ranges, ...]:
        runs = [(run.topic, run.partition, range(run.start, run.end)) for run in ranges]
        sizes = {(t, p): [(o, self.sizes.get(o, 1)) for o in run] for t, p, run in runs}
        return (ranges,) if self.replaces else in_pieces(ranges, sizes, self.bytes_max)

    @property
    def must_stay_whole(self) -> bool:
        return self.replaces

    def has_no_records(self, ranges: Ranges) -> bool:
        return self.markers

    def distributes(self, ranges: Ranges) -> bool:
        return False

    def read(self, ranges: tuple[Range, ...], without: Without) -> BatchRows:
        self.read_again.append(ranges)
        return self._rows(NO_FRAME)

    def plan_records(self, ranges: Ranges, without: Without) -> Any: ...  # noqa: ANN401 - of a subclass

    def dead(self, rejected: Sequence[RejectedRecord]) -> tuple[DeadLetterRecord, ...]:
        return ()

    def raw(self, positions: Without) -> tuple[RawRecord, ...]:
        return ()

    def _rows(self, frame: DataFrame) -> BatchRows:
        self.reads += 1
        rows = pa.table({"n": [] if self.empty else [1, 2]})
        return BatchRows({"first": rows, "second": rows})
