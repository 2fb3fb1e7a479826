"""Lists the batches of a stage, from what it has reported of them. Pure.

A stage reports each batch once for each sink, right after it was committed. It reports its newest
batch again when it starts: that has the time when the batch began, and no end. So a report without
an end is a batch of its own only if the first report was never written: then its end is not known.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from waybill_shared.contract.batches import BatchReport
from waybill_shared.contract.events import Commit, Range
from waybill_shared.contract.moments import Moment
from waybill_shared.contract.slots import key_of_commit
from waybill_shared.contract.status_events import BatchRange
from waybill_shared.contract.words import HistoryGap
from waybill_status.core.pipelines.history import Cursor, EventPlace

RANGES_MAX: Final = 100  # of one batch; outcomes of tokens say where each record is
UNKNOWN_END: Final = "null: this was not reported"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedBatch:
    """A report of a batch in one sink, and its position in the topic. `sink`: the key of the sink.
    `ranges`: the first RANGES_MAX."""

    place: EventPlace
    generation: int
    sink: str
    name: str
    batch: BatchReport
    ranges: tuple[BatchRange, ...]
    ranges_count: int
    records: int

    @property
    def own(self) -> bool:
        """True if it is the first report of a batch. Others have the start of it as its end."""
        return self.batch.committed_at > self.batch.started_at


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSink:
    name: str
    rows: int
    committed_at: Moment | None = field(metadata={"description": UNKNOWN_END})
    version: dict[str, str] | None = field(
        metadata={"description": "what the sink calls what it had then; null: it names none"}
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StageBatch:
    """A batch of a stage. A big one is several, with the same number and other ranges."""

    id: str = field(metadata={"description": "for `after`"})
    batch: int
    generation: int
    started_at: Moment
    ranges: tuple[BatchRange, ...] = field(metadata={"description": f"the first {RANGES_MAX}"})
    ranges_count: int
    records: int = field(metadata={"description": "offsets that it read"})
    sinks: tuple[BatchSink, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchesPage:
    """Batches, oldest first. `next` and `gap`: as in a page of events."""

    items: tuple[StageBatch, ...]
    next: Cursor | None = None
    gap: HistoryGap | None = None


def report_of(place: EventPlace, generation: int, commit: Commit) -> ReportedBatch:
    return ReportedBatch(
        place=place,
        generation=generation,
        sink=key_of_commit(commit),
        name=commit.sink,
        batch=commit.batch,
        ranges=tuple(map(_range, commit.inputs[:RANGES_MAX])),
        ranges_count=len(commit.inputs),
        records=sum(each.end - each.start for each in commit.inputs),
    )


@dataclass(slots=True, kw_only=True)
class BatchGroup:
    """The reports of one batch, from one or more sinks."""

    reports: list[ReportedBatch]

    @property
    def place(self) -> EventPlace:
        return self.reports[0].place

    def takes(self, other: ReportedBatch) -> bool:
        """Return True if `other` is the same batch in another sink."""
        same = _identity(other) == _identity(self.reports[0])
        return same and all(other.sink != each.sink for each in self.reports)

    def describe(self) -> StageBatch:
        first = self.reports[0]
        return StageBatch(
            id=str(first.place),
            batch=first.batch.batch_id,
            generation=first.generation,
            started_at=first.batch.started_at,
            ranges=first.ranges,
            ranges_count=first.ranges_count,
            records=first.records,
            sinks=tuple(map(_sink, self.reports)),
        )


def group(reports: Iterable[ReportedBatch]) -> tuple[list[BatchGroup], int | None]:
    """Return the batches of these reports, oldest first, and the offset of the last report of which
    nobody can say whether it repeats an older one."""
    groups: list[BatchGroup] = []
    newest: dict[str, int] = {}
    unclear: int | None = None
    for each in reports:
        before = newest.get(each.sink)
        newest[each.sink] = max(each.batch.sequence, before or 0)
        if each.batch.batch_id < 0 or not each.ranges_count:
            continue  # it moved the fence alone
        if before is not None and each.batch.sequence <= before:
            continue
        if before is None and not each.own:
            unclear = each.place.offset
        elif groups and groups[-1].takes(each):
            groups[-1].reports.append(each)
        else:
            groups.append(BatchGroup(reports=[each]))
    return groups, unclear


def _range(read: Range) -> BatchRange:
    return BatchRange(topic=read.topic, partition=read.partition, start=read.start, end=read.end)


def _sink(report: ReportedBatch) -> BatchSink:
    return BatchSink(
        name=report.name,
        rows=report.batch.rows,
        committed_at=report.batch.committed_at if report.own else None,
        version=report.batch.version or None,
    )


def _identity(report: ReportedBatch) -> tuple[object, ...]:
    batch = report.batch
    return batch.lineage, batch.batch_id, report.ranges, report.ranges_count
