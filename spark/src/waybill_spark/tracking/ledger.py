"""The fence of one sink of a stage: reads it, moves it, and reports it. Nothing else does.

A fence says what the sink has. The sink moves it together with the rows, or alone. In order:

1. `claim` makes a Kafka sink refuse earlier drivers; a table refuses them after its fence moved.
   `read` reads the fence after all claims. It raises SinkSuperseded if that is of a later claim.
2. A sink that was added to a running stage has no fence. `find_start` computes its start, and
   `start_at` writes a first fence there. What lies before is set aside.
3. `write` writes the rows and the next fence, and then reports it.
4. `set_aside` moves the fence past records that can never be processed, and reports that.
   `move_claim` moves only the claim in the fence, before dead letters are written, and before a
   run is called paused.
5. `report` sends a commit as soon as every reader can see what the fence covers. Until then the
   ledger is `hidden`, and `TrackedStage.watch` calls `report` again.
6. `rewind` moves the fence alone: its position goes back, and its frontier stays, or both go
   forward. Nothing else moves the position back.
7. `close_for_good` moves the fence a last time when the sink is removed. Then no earlier driver
   can write.

Each fence has the next sequence number and includes all before it, so a lost report does no harm.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

import pyarrow as pa

from waybill_shared.contract.driver_news import TableMaintenance
from waybill_shared.contract.errors import ContractError
from waybill_shared.contract.events import Commit, Fence, SetAside
from waybill_shared.contract.slots import sink_key
from waybill_shared.contract.vectors import Vector, covers, join
from waybill_shared.process.clock import Clock
from waybill_shared.process.failpoints import reach
from waybill_spark.tracking.batch import Batch
from waybill_spark.tracking.commits import Identity, commit_of
from waybill_spark.tracking.distributed_rows import Rows
from waybill_spark.tracking.fencing import LaterSink, StageInput, bases_of
from waybill_spark.tracking.losses import find_before_start, find_lost_with_topic, union
from waybill_spark.tracking.next_fence import next_fence, no_batch
from waybill_spark.tracking.pieces import ends_of
from waybill_spark.tracking.rewinding import Rewind, find_skipped, joint_starts, rewound_fence
from waybill_spark.tracking.sink import Maintained, Sink, SinkSuperseded, Versioned, Written

NOWHERE: Final[Vector] = {}
Found = tuple[SetAside, ...]


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
        """True if what the sink contains is not reported yet, because readers cannot see it yet."""
        self._topic_deleted = False
        """True if the topic of the sink was deleted, so that nothing there will ever be seen."""
        self.loading_since: int | None = None
        """Since when it has been writing a batch."""
        self._without_replays: Vector = NOWHERE
        """Up to where no replay is left that names the sink."""

    @property
    def key(self) -> str:
        """The key of the sink in the slot."""
        return self.sink.key or sink_key(self.stage, self.sink.name, self.sink.since)

    @property
    def fence(self) -> Fence | None:
        return self._written.fence if self._written is not None else None

    def claim(self) -> None:
        """Shut out every earlier driver from the sink."""
        with self._in_sink():
            self.sink.claim()

    def read(self) -> None:
        """Read the newest fence from the sink, after every sink of the stage was claimed.

        Raise SinkSuperseded if a driver of a later claim has moved it. This driver was started too
        late, as by a runner that was cut off, and what it would continue may be closed.
        """
        with self._in_sink():
            self._written = self.sink.last()
        if self._identity.is_before(self.fence):
            raise SinkSuperseded(f"sink {self.sink.name}: its fence is of a later claim")

    def frontier(self) -> Vector:
        """Return the vector below which the sink has everything, or it was set aside."""
        fence = self.fence
        return self._bases if fence is None else join(self._bases, fence.frontier)

    def position(self) -> Vector:
        """Return the vector where the next batch of the sink begins."""
        fence = self.fence
        return self._bases if fence is None else join(self._bases, fence.position)

    @property
    def replayed(self) -> Vector:
        """The vector below which the sink has all replays that name it."""
        fence = self.fence
        return join(self._without_replays, {} if fence is None else fence.replayed)

    def end_of_all(self) -> Vector:
        """Return what the sink never reads again: below its position, and below `replayed`."""
        return {**self.position(), **self.replayed}

    def pass_replays(self, end: Vector) -> None:
        """Note that no replay below `end` is left that names the sink, and report that.

        The fence says so with its next move; one that has none gets it now, to have a commit.
        """
        known = self.replayed
        self._without_replays = join(self._without_replays, end)
        if not covers(known, end):
            if self.fence is None:
                self.move_claim()
            self.report()

    @property
    def rewind_number(self) -> int:
        """The number of the newest rewind that was done here; 0: none."""
        return 0 if self.fence is None else self.fence.rewind

    def rewind(self, rewinds: Sequence[Rewind], *, reads_on: bool) -> None:
        """Move the fence alone, so that the next batch begins where these rewinds say."""
        wanted = joint_starts(rewinds, self.frontier())
        skipped = find_skipped(self._inputs, wanted, self.frontier())
        moved = self._next(ends_of(each.ranges for each in skipped), self._no_batch())
        rewound = rewound_fence(self.fence, moved, wanted, skipped, self._bases, reads_on=reads_on)
        self._reach("before_rewind")
        self._move(None, replace(rewound, rewind=rewinds[-1].number))
        self._reach("after_rewind")

    def has_written_since(self, generation: int) -> bool:
        """Return True if the stage has written here since this generation. To start or to close a
        sink is no writing.
        """
        fence = self.fence
        if fence is None or fence.generation < generation:
            return False
        return self.later is None or fence.batches > 0

    def start_at(self, others: Vector, rewind: int) -> None:
        """Give a sink that was added later its first fence; `others` is where the stage's other
        sinks are, after the rewind of that number.

        A partition that was added after the sink belongs to it from its first offset.
        """
        assert self.later is not None
        latest = self._bases | dict(self.later.bases)
        known = {topic_id for topic_id, _ in latest}
        begin = {
            place: min(end, latest.get(place, 0)) if place[0] in known else end
            for place, end in others.items()
        }
        fence = self._next(begin, self._no_batch())
        aside = find_before_start(self._inputs, self._bases, begin)
        self._move(None, replace(fence, set_aside=aside, rewind=rewind))

    def move_claim(self) -> None:
        """Move the fence alone, to where it is, so that no driver of an earlier claim can write any
        more.

        For a table a claim alone does not stop such a driver. One that does not know the dead
        letters would write them, and one would write in a pause.
        """
        before, own = self.fence, self._identity
        if before is None:
            self._move(None, self._next({}, self._no_batch()))
        elif (before.lifecycle_id, before.epoch) != (own.lifecycle_id, own.epoch):
            batch = replace(before.batch, sequence=before.batch.sequence + 1)
            moved = replace(before, lifecycle_id=own.lifecycle_id, epoch=own.epoch)
            self._move(None, replace(moved, batch=batch))

    def write(self, rows: Rows, batch: Batch) -> None:
        """Write a batch that follows the fence, and report it."""
        after = self._next(ends_of([batch.ranges]), batch)
        batches = after.batches + (not batch.for_one_sink)
        began = self.loading_since = self._clock.now_ms()
        report = replace(after.batch, rows=rows.num_rows, write_started_at=began)
        fence = replace(after, batch=report, batches=batches)
        try:
            self._reach("before_load")
            self._move(None if batch.has_no_records else rows.to_batches(), fence)
        finally:
            self.loading_since = None
        self._reach("after_commit")
        self.report(committed_at=self._clock.now_ms())
        self._reach("after_event")

    def set_aside(
        self,
        found: Found,
        generation: int | None = None,
        *,
        passed: Vector = NOWHERE,
        of_replays: bool = False,
    ) -> None:
        """Move the fence alone past what will never be processed, and report it.

        `generation`: the one that the fence is of, if not this driver's. `passed`: up to where
        the sink reads nothing again: what it had is gone, or was set aside before.
        """
        batch = replace(self._no_batch(), of_replays=of_replays)
        ends = {**passed, **ends_of(each.ranges for each in found)}
        self._move_alone(self._next(ends, batch), found, generation)

    @property
    def lost_its_topic(self) -> bool:
        """True if the sink's topic was deleted or created again, and nobody has reported it."""
        fence = self.fence
        return fence is not None and (self._topic_deleted or fence.generation < self.sink.moved)

    def set_topic_aside(self, generation: int | None = None) -> None:
        """Move the fence alone and report it. All that a deleted topic contained is set aside."""
        fence = self.fence if self.lost_its_topic else None
        found = find_lost_with_topic(self._inputs, self._bases, fence) if fence else ()
        self._move_alone(self._next({}, self._no_batch()), found, generation)

    def _move_alone(self, moved: Fence, found: Found, generation: int | None) -> None:
        kept = moved.generation if generation is None else generation
        self._move(None, replace(moved, generation=kept, set_aside=union(moved.set_aside, found)))
        self.report()

    def close_for_good(self, *, topic_deleted: bool = False) -> None:
        """Report a last time, and move the fence, so that no earlier driver can write any more.

        A sink without a fence gets its first one for this. It keeps its generation: if the sink
        stays after all, the stage has not continued in it.

        `topic_deleted`: its topic was deleted before it. Nobody can see the rows there any more,
        but readers may have read them before.
        """
        self._topic_deleted = topic_deleted
        before = self.fence
        self.set_topic_aside(self._identity.generation if before is None else before.generation)

    def report(self, *, committed_at: int | None = None) -> None:
        """Report what the sink contains, if every reader can see it; otherwise it stays `hidden`.

        The time of a commit is known only right after it; later reports have the start of the
        batch instead.
        """
        if self._written is None:
            return
        fence = self._written.fence
        with self._in_sink():
            self.hidden = not (self._topic_deleted or self.sink.await_visible(fence))
        if self.hidden:
            return
        self._versions_from = self._read_versions_from()
        batch = replace(fence.batch, version=self._written.version)
        if committed_at is not None:
            batch = replace(batch, committed_at=committed_at)
        self._emit(
            commit_of(
                fence,
                batch,
                since=self.sink.since,
                versions_from=self._versions_from,
                key=self.sink.key,
                replayed=self.replayed,
            )
        )

    def maintain(self) -> TableMaintenance | None:
        """Run a maintenance task if one is due. Report the fence again if it deleted versions."""
        if not isinstance(self.sink, Maintained):
            return None
        kept = self.sink.maintain()
        if self._written is not None and self._read_versions_from() != self._versions_from:
            self.report()
        return None if kept is None else kept.of(self.stage, self.sink.name)

    def _read_versions_from(self) -> int:
        return self.sink.versions_from if isinstance(self.sink, Versioned) else 0

    def _move(self, rows: Iterable[pa.RecordBatch] | None, fence: Fence) -> None:
        with self._in_sink():
            self._written = self.sink.write(rows, fence)

    @contextmanager
    def _in_sink(self) -> Iterator[None]:
        """Mark errors that are raised in here with the name of the sink."""
        try:
            yield
        except ContractError as error:
            error.sink = self.sink.name
            raise

    def _no_batch(self) -> Batch:
        return no_batch(self.fence, self._clock.now_ms())

    def _next(self, ends: Vector, batch: Batch) -> Fence:
        """Return the fence after the present one, without rows yet."""
        return next_fence(
            self.fence,
            batch,
            ends=ends,
            bases=self._bases,
            replayed=self.replayed,
            stage=self.stage,
            sink=self.sink.name,
            identity=self._identity,
        )

    def _reach(self, edge: str) -> None:
        reach(f"{self._identity.pipeline_uid}.{self.sink.name}.{edge}")
