"""One tracked stage: turns each micro-batch into effects that happen once, and into commits.

Knows nothing of manifests or runners: it gets inputs, sinks and a function from a batch to rows.
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame

from shared.clock import Clock
from shared.events import Commit, Fence, Range, SinkResult, from_vector, to_vector
from shared.failpoints import reach
from shared.vectors import TopicPartition
from waybill.spark.checkpoint import Checkpoint
from waybill.spark.commits import Identity
from waybill.spark.fencing import (
    AlreadyDone,
    Diverged,
    StageInput,
    Write,
    bases_of,
    batch_ranges,
    decide,
)
from waybill.spark.sinks import Sink, Written

Rows = Mapping[str, pa.Table]
"""The rows of a batch for each sink, by the sink's name."""


class StageStopped(Exception):
    """The stage cannot go on; `reason` is a word that an outcome can show."""

    def __init__(self, reason: str, detail: str, hint: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail
        self.hint = hint


class StageClosed(Exception):
    """A batch came after `close`; Spark keeps it for the next start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    batch_id: int
    lineage: str
    ranges: tuple[Range, ...]
    started_at: int


class TrackedStage:
    """`process` goes into `foreachBatch`. One thread calls it at a time."""

    def __init__(
        self,
        name: str,
        *,
        identity: Identity,
        inputs: tuple[StageInput, ...],
        sinks: tuple[Sink, ...],
        checkpoint: Checkpoint,
        to_rows: Callable[[DataFrame], Rows],
        topic_ids: Callable[[tuple[str, ...]], Mapping[str, str]],
        emit: Callable[[Commit], None],
        clock: Clock,
    ) -> None:
        self.name = name
        self._identity = identity
        self._inputs = inputs
        self._sinks = sinks
        self._checkpoint = checkpoint
        self._to_rows = to_rows
        self._topic_ids = topic_ids
        self._emit = emit
        self._clock = clock
        self._written: dict[str, Written] = {}
        self._busy = threading.Lock()
        self._closed = False

    def open(self) -> None:
        """Shut out earlier drivers, read every fence, and report again what stands there."""
        for sink in self._sinks:
            sink.claim()
        for sink in self._sinks:
            last = sink.last()
            if last is not None:
                self._written[sink.name] = last
                self._report(sink, last, committed_at=last.fence.at)

    def starting_offsets(self) -> dict[TopicPartition, int]:
        """Where a checkpoint that is new must begin: at the fences, else at the bases."""
        bases = bases_of(self._inputs)
        held = {
            sink.name: {**bases, **to_vector(self._written[sink.name].fence.frontier)}
            if sink.name in self._written
            else bases
            for sink in self._sinks
        }
        first = next(iter(held.values()))
        if any(vector != first for vector in held.values()):
            detail = f"the sinks of stage {self.name} stand at different offsets: {held}"
            hint = "restore the checkpoint folder, from which the lagging sink can be completed"
            raise StageStopped("checkpoint_diverged", detail, hint)
        return first

    def process(self, frame: DataFrame, batch_id: int) -> None:
        with self._busy:
            if self._closed:
                raise StageClosed
            self._process(frame, batch_id)

    def close(self) -> None:
        """Wait for the running batch; none begins any more."""
        with self._busy:
            self._closed = True

    def _process(self, frame: DataFrame, batch_id: int) -> None:
        batch = self._describe(batch_id)
        if not batch.ranges:
            return  # Spark's first batch on empty topics: it takes nothing, so nothing changes
        decisions = [(sink, self._decide(sink, batch)) for sink in self._sinks]
        writes = any(isinstance(decision, Write) for _, decision in decisions)
        rows = self._to_rows(frame) if writes else {}
        if writes:
            self._check_topics()
        for sink, decision in decisions:
            if isinstance(decision, AlreadyDone):
                self._report(sink, self._written[sink.name], committed_at=decision.fence.at)
                continue
            fence = self._advance(sink, batch, decision, rows[sink.name].num_rows)
            self._written[sink.name] = sink.write(rows[sink.name], fence)
            reach(f"{self._identity.pipeline_uid}.{sink.name}.after_commit")
            self._report(sink, self._written[sink.name], committed_at=self._clock.now_ms())
            reach(f"{self._identity.pipeline_uid}.{sink.name}.after_event")

    def _describe(self, batch_id: int) -> Batch:
        starts = self._checkpoint.starts(batch_id)
        ends = self._checkpoint.ends(batch_id)
        return Batch(
            batch_id=batch_id,
            lineage=self._checkpoint.lineage(),
            ranges=batch_ranges(self._inputs, starts, ends),
            started_at=self._clock.now_ms(),
        )

    def _decide(self, sink: Sink, batch: Batch) -> Write | AlreadyDone:
        written = self._written.get(sink.name)
        fence = written.fence if written is not None else None
        decision = decide(fence, batch.ranges, bases_of(self._inputs))
        if isinstance(decision, Diverged):
            hint = "the checkpoint is not the one that filled this sink: restore it"
            detail = f"stage {self.name}, sink {sink.name}: {decision.detail}"
            raise StageStopped("checkpoint_diverged", detail, hint)
        return decision

    def _check_topics(self) -> None:
        """After the rows are read: a topic re-created in between gave rows of another topic."""
        present = self._topic_ids(tuple(i.topic for i in self._inputs))
        for source in self._inputs:
            if present.get(source.topic) != source.topic_id:
                found = present.get(source.topic, "none")
                detail = f"topic {source.topic} had id {source.topic_id}, now it is {found}"
                hint = "start the pipeline anew on the new topic"
                raise StageStopped("topic_recreated", detail, hint)

    def _advance(self, sink: Sink, batch: Batch, decision: Write, row_count: int) -> Fence:
        previous = self._written.get(sink.name)
        return Fence(
            tenant=self._identity.tenant,
            pipeline_uid=self._identity.pipeline_uid,
            stage=self.name,
            sink=sink.name,
            sequence=decision.sequence,
            lineage=batch.lineage,
            batch_id=batch.batch_id,
            epoch=self._identity.epoch,
            inputs=batch.ranges,
            frontier=from_vector(decision.frontier),
            outputs=previous.fence.outputs if previous is not None else (),
            batch_rows=row_count,
            at=batch.started_at,
        )

    def _report(self, sink: Sink, written: Written, *, committed_at: int) -> None:
        fence = written.fence
        sink.await_visible(fence)
        result = SinkResult(
            name=sink.name,
            kind=sink.kind,
            outcome="committed",
            batch_rows=fence.batch_rows,
            version=written.version,
            started_at=fence.at,
            ended_at=committed_at,
        )
        self._emit(
            Commit(
                stage=self.name,
                sequence=fence.sequence,
                lineage=fence.lineage,
                epoch=fence.epoch,
                batch_id=fence.batch_id,
                started_at=fence.at,
                committed_at=committed_at,
                inputs=fence.inputs,
                frontier=fence.frontier,
                outputs=fence.outputs,
                sinks=(result,),
            )
        )
