"""What one sink of a stage holds, as its fence says, and the one way to move and report it."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import pyarrow as pa

from waybill_shared.contract.driver_news import TableUpkeep
from waybill_shared.contract.errors import ContractError
from waybill_shared.contract.events import Commit, Fence, Range, SetAside, from_vector, to_vector
from waybill_shared.contract.slots import sink_key
from waybill_shared.contract.vectors import TopicPartition, Vector, join
from waybill_shared.process.clock import Clock
from waybill_shared.process.failpoints import reach
from waybill_spark.commits import Identity
from waybill_spark.fencing import (
    AlreadyDone,
    Diverged,
    LaterSink,
    StageInput,
    Write,
    bases_of,
    decide,
    drop_empty,
)
from waybill_spark.settling import left_out, union, went_with_topic
from waybill_spark.sinks.contract import (
    Maintained,
    Sink,
    SinkSuperseded,
    Versioned,
    Written,
)
from waybill_spark.sinks.spread import Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A batch as the checkpoint has planned it."""

    batch_id: int
    lineage: str
    runs: tuple[Range, ...]
    started_at: int
    alone: bool = False
    """Whether it is for one sink that lags, and so says nothing of the others."""
    hollow: bool = False
    """Whether it holds no record: then also what its rows would take the place of stays."""
    dead_sequence: int = 0
    """Of the last dead letters that its stage has told of."""
    dropped: Mapping[str, int] = field(default_factory=dict)
    """How many of its records rules have dropped."""

    @property
    def ranges(self) -> tuple[Range, ...]:
        return drop_empty(self.runs)


BEFORE_ALL = Batch(batch_id=-1, lineage="", runs=(), started_at=0)


class Ledger:
    """Callers see to it that one thread at a time is in here; those of a stage share nothing."""

    def __init__(
        self,
        sink: Sink,
        *,
        stage: str,
        inputs: tuple[StageInput, ...],
        later: LaterSink | None = None,
        identity: Identity,
        emit: Callable[[Commit], None],
        clock: Clock,
    ) -> None:
        self.sink = sink
        self.later = later
        self.stage = stage
        self._inputs = inputs
        self._bases = bases_of(inputs)
        self._identity = identity
        self._emit = emit
        self._clock = clock
        self._written: Written | None = None
        self._versions_from = 0
        self.hidden = False
        """Whether readers cannot see yet, and so nobody was told, what stands in the sink."""
        self._gone = False
        """Whether the topic of the sink is no more, so that nothing there will ever be seen."""
        self.loading_since: int | None = None
        """Since when it has been taking a batch."""

    @property
    def key(self) -> str:
        """Of the sink, in the slot."""
        return sink_key(self.stage, self.sink.name, self.sink.since)

    @property
    def fence(self) -> Fence | None:
        return self._written.fence if self._written is not None else None

    def claim(self) -> None:
        """Shut out every earlier driver from the sink."""
        with self._in_sink():
            self.sink.claim()

    def read(self) -> None:
        """Take the newest fence from the sink, after every sink of the stage was claimed.

        Raises SinkSuperseded if a driver of a later claim has moved it: this one was started too
        late, as by a runner that was cut off, and what it would go on with may be closed.
        """
        with self._in_sink():
            self._written = self.sink.last()
        if self._late():
            raise SinkSuperseded(f"sink {self.sink.name}: its fence is of a later claim")

    def held(self) -> Vector:
        """Below this the sink holds everything, or it was set aside."""
        fence = self.fence
        return self._bases if fence is None else join(self._bases, to_vector(fence.frontier))

    def went_on_in(self, generation: int) -> bool:
        """Whether the stage has written here since then; to begin or to be closed is no writing."""
        fence = self.fence
        if fence is None or fence.generation < generation:
            return False
        return self.later is None or fence.batches > 0

    def begin_at(self, stand: Vector) -> None:
        """Give a sink that came later its first fence; the stage's other sinks are at `stand`.

        A partition that came after the sink did is all its own.
        """
        assert self.later is not None
        latest = self._bases | dict(self.later.bases)
        known = {topic_id for topic_id, _ in latest}
        begin = {
            place: min(end, latest.get(place, 0)) if place[0] in known else end
            for place, end in stand.items()
        }
        fence = self._next(begin, replace(BEFORE_ALL, started_at=self._clock.now_ms()))
        aside = left_out(self._inputs, self._bases, begin)
        self._move(None, replace(fence, set_aside=aside))

    def hold(self) -> None:
        """Move the fence alone, to where it is: no driver of an earlier claim can write any more.

        A claim shuts nobody out of a table, and who has not heard what died would write it.
        """
        before, own = self.fence, self._identity
        if before is None:
            self._move(None, self._next({}, replace(BEFORE_ALL, started_at=self._clock.now_ms())))
        elif (before.lifecycle_id, before.epoch) != (own.lifecycle_id, own.epoch):
            held = replace(before, sequence=before.sequence + 1)
            self._move(None, replace(held, lifecycle_id=own.lifecycle_id, epoch=own.epoch))

    def decide(self, batch: Batch) -> Write | AlreadyDone | Diverged:
        return decide(self.fence, batch.runs, self._bases)

    def write(self, rows: Rows, batch: Batch) -> None:
        """Write a batch that follows the fence, and report it."""
        ends = {(run.topic_id, run.partition): run.end for run in batch.ranges}
        after = self._next(ends, batch)
        batches = after.batches + (not batch.alone)
        fence = replace(after, batch_rows=rows.num_rows, batches=batches)
        began = self.loading_since = self._clock.now_ms()
        try:
            self._reach("before_load")
            self._move(None if batch.hollow else rows.to_batches(), fence)
        finally:
            self.loading_since = None
        self._reach("after_commit")
        self.report(began_at=began, committed_at=self._clock.now_ms())
        self._reach("after_event")

    def set_aside(self, found: tuple[SetAside, ...], generation: int | None = None) -> None:
        """Move the fence alone past what will never be processed, and report it.

        `generation`: the one that the fence is of, if not this driver's.
        """
        ends = {(r.topic_id, r.partition): r.end for each in found for r in each.ranges}
        fence = self.fence
        last = (
            replace(BEFORE_ALL, started_at=self._clock.now_ms())
            if fence is None
            else Batch(
                batch_id=fence.batch_id,
                lineage=fence.lineage,
                runs=(),
                started_at=self._clock.now_ms(),
            )
        )
        moved = self._next(ends, last)
        kept = moved.generation if generation is None else generation
        self._move(None, replace(moved, generation=kept, set_aside=union(moved.set_aside, found)))
        self.report(committed_at=last.started_at)

    @property
    def bereft(self) -> bool:
        """Whether what the sink holds went with its topic, and nobody has said so yet."""
        fence = self.fence
        return fence is not None and (self._gone or fence.generation < self.sink.moved)

    def give_up(self, generation: int | None = None) -> None:
        """Move the fence alone and report it; before that, what is gone with its topic is lost."""
        fence = self.fence if self.bereft else None
        found = went_with_topic(self._inputs, self._bases, fence) if fence else ()
        self.set_aside(found, generation)

    def shut(self, *, gone: bool = False) -> None:
        """Report a last time, and move the fence, so that no earlier driver can write any more.

        One that has written nothing yet is shut out by a first fence. It keeps its generation: if
        the sink stays after all, the stage has not gone on in it. `gone`: its topic went before it.
        Nobody sees there any more what it took; but who has read it there may have it.
        """
        self._gone = gone
        before = self.fence
        self.give_up(self._identity.generation if before is None else before.generation)

    def report(self, *, began_at: int | None = None, committed_at: int | None = None) -> None:
        """Say what stands in the sink, if every reader can see it; else it stays `hidden`.

        When the sink was written is only known right after; later, the batch's begin stands for it.
        """
        if self._written is None:
            return
        fence = self._written.fence
        committed_at = fence.at if committed_at is None else committed_at
        with self._in_sink():
            self.hidden = not (self._gone or self.sink.await_visible(fence))
        if self.hidden:
            return
        self._versions_from = self._read_versions_from()
        self._emit(
            Commit(
                stage=self.stage,
                sink=self.sink.name,
                since=self.sink.since,
                sequence=fence.sequence,
                lineage=fence.lineage,
                epoch=fence.epoch,
                batch_id=fence.batch_id,
                started_at=fence.at,
                write_started_at=fence.at if began_at is None else began_at,
                committed_at=committed_at,
                inputs=fence.inputs,
                frontier=fence.frontier,
                outputs=fence.outputs,
                batch_rows=fence.batch_rows,
                version=self._written.version,
                set_aside=fence.set_aside,
                dead_sequence=fence.dead_sequence,
                dropped=fence.dropped,
                versions_from=self._versions_from,
            )
        )

    def keep_in_order(self) -> TableUpkeep | None:
        """Report again, if versions have gone since."""
        if not isinstance(self.sink, Maintained):
            return None
        kept = self.sink.keep_in_order()
        if self._written is not None and self._read_versions_from() != self._versions_from:
            self.report()
        if kept is None:
            return None
        return TableUpkeep(
            stage=self.stage,
            sink=self.sink.name,
            task=kept.task,
            done={**kept.done},
            problem=kept.problem,
        )

    def _read_versions_from(self) -> int:
        return self.sink.versions_from if isinstance(self.sink, Versioned) else 0

    def _move(self, rows: Iterable[pa.RecordBatch] | None, fence: Fence) -> None:
        with self._in_sink():
            self._written = self.sink.write(rows, fence)

    @contextmanager
    def _in_sink(self) -> Iterator[None]:
        """What fails in here, the sink has said."""
        try:
            yield
        except ContractError as error:
            error.sink = self.sink.name
            raise

    def _late(self) -> bool:
        """Whether the claim of this driver is older than that of the one that moved the fence."""
        fence, own = self.fence, self._identity
        return (
            fence is not None and fence.lifecycle_id == own.lifecycle_id and fence.epoch > own.epoch
        )

    def _next(self, ends: Vector, batch: Batch) -> Fence:
        """The fence behind the present one, without rows yet."""
        before = self.fence
        dropped = Counter(before.dropped if before is not None else {})
        dropped.update(batch.dropped)
        return Fence(
            tenant=self._identity.tenant,
            pipeline_uid=self._identity.pipeline_uid,
            stage=self.stage,
            sink=self.sink.name,
            sequence=before.sequence + 1 if before is not None else 0,
            generation=self._identity.generation,
            lineage=batch.lineage,
            batch_id=batch.batch_id,
            epoch=self._identity.epoch,
            lifecycle_id=self._identity.lifecycle_id,
            inputs=batch.ranges,
            frontier=from_vector(join(self.held(), ends)),
            outputs=before.outputs if before is not None else (),
            set_aside=before.set_aside if before is not None else (),
            batches=before.batches if before is not None else 0,
            batch_rows=0,
            at=batch.started_at,
            dead_sequence=max(batch.dead_sequence, before.dead_sequence if before else 0),
            dropped=dict(dropped),
        )

    def _reach(self, edge: str) -> None:
        reach(f"{self._identity.pipeline_uid}.{self.sink.name}.{edge}")


def where_to_begin(ledger: Ledger, stage: Iterable[Ledger]) -> Vector | None:
    """Where the sinks of the stage stand, for one that came when it had begun; None for any other.

    Also for one that was there and lost its fence.
    """
    begun = [other for other in stage if other.fence is not None]
    if ledger.fence is not None or ledger.later is None or not begun:
        return None
    since = ledger.later.since
    if any(other.went_on_in(since) for other in begun):
        return None
    stand: dict[TopicPartition, int] = {}
    for other in begun:
        stand = join(stand, other.held())
    return stand
