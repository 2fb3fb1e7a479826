"""One tracked stage: each micro-batch takes effect once in every sink, and is reported as commits.

It knows no manifests and no runners. It gets inputs, sinks and a function from a batch to rows.
The driver calls, in this order:

1. `open` claims the journal of dead letters and all sinks against earlier drivers. Then it reads
   the fences, gives a first one to sinks that were added later, and stops if one is missing.
   Rewinds that were not done in each sink yet are done (`rewinding`).
2. `report_losses` reports every fence. It also sets aside what can never be processed: records of
   deleted topics, and records that retention removed. It raises StageStopped if a person must act.
   `put_dead_letters` then writes the letters that a person asks for (`putting`).
3. `resume` compares the checkpoint with the fences. If they fit, Spark continues. If not, the
   checkpoint is moved aside, sinks that lag get what they lack, and a new query starts.
4. `process` is called by Spark for each batch. `fencing` decides if it runs, and into which sinks
   it is written; sinks that have the batch report again. A big batch is cut into pieces.
   `BatchWriter` then reads the rows, writes the dead letters, and loads the sinks.
5. `watch` is called between batches: it reports what was hidden, and looks for new losses.
   `replay` brings dead letters back (`replaying`).
6. `close` waits for the running batch, and lets no other start.
"""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Generic, TypeVar

from waybill_shared.contract.batches import planned
from waybill_shared.contract.dead_letter_requests import DeadLetterRequest
from waybill_shared.contract.driver_news import SinkWait, TableMaintenance
from waybill_shared.contract.errors import Problem
from waybill_shared.contract.events import Commit
from waybill_shared.contract.vectors import TopicPartition, Vector
from waybill_shared.process.clock import Clock
from waybill_shared.process.failpoints import reach
from waybill_spark.tracking.batch import Batch
from waybill_spark.tracking.batch_gate import BatchGate
from waybill_spark.tracking.batch_progress import BatchProgress
from waybill_spark.tracking.batch_rows import BatchRows
from waybill_spark.tracking.batch_writer import BatchWriter
from waybill_spark.tracking.checkpoint import Checkpoint
from waybill_spark.tracking.commits import Identity
from waybill_spark.tracking.dead_letters.budget import Budget, BudgetExceeded
from waybill_spark.tracking.dead_letters.triage import Triage
from waybill_spark.tracking.fencing import (
    AlreadyDone,
    Diverged,
    LaterSink,
    RunOnly,
    StageInput,
    Write,
    bases_of,
    batch_runs,
    decide,
)
from waybill_spark.tracking.ledger import Ledger
from waybill_spark.tracking.loads import Loads
from waybill_spark.tracking.loss_reporter import LossReporter
from waybill_spark.tracking.opening import (
    diverged,
    do_rewinds,
    make_batch,
    read_planned,
    refuse_missing_fences,
    refuse_older_rows,
    start_later_sinks,
)
from waybill_spark.tracking.pieces import Ranges, ends_of, has_all, in_parts, in_steps
from waybill_spark.tracking.ports import JOURNAL, DeadJournal, Source
from waybill_spark.tracking.putting import ReplayedLetters, put_dead_letters
from waybill_spark.tracking.replaying import LetterReadings, Replaying, Replays
from waybill_spark.tracking.resuming import ContinueCheckpoint, resume
from waybill_spark.tracking.rewinding import Replacing, Rewind, edges_of, is_set_aside
from waybill_spark.tracking.sink import Sink
from waybill_spark.tracking.stopping import collect, raise_first

logger = logging.getLogger(__name__)

Frame = TypeVar("Frame")
"""The type of a batch as the engine passes it. It is only handed to `to_rows`."""


class TrackedStage(Generic[Frame]):
    """`process` goes into `foreachBatch`. Every method may be called from any thread."""

    def __init__(
        self,
        name: str,
        *,
        identity: Identity,
        inputs: tuple[StageInput, ...],
        sinks: tuple[Sink, ...],
        later: Mapping[str, LaterSink] | None = None,
        checkpoint: Checkpoint,
        source: Source,
        offsets_max: int,
        to_rows: Callable[[Frame], BatchRows],
        journal: DeadJournal,
        budget: Budget,
        loads: Loads,
        emit: Callable[[Commit], None],
        report_maintenance: Callable[[TableMaintenance], None],
        clock: Clock,
        has_state: bool = False,
        rewinds: Sequence[Rewind] = (),  # the oldest first
        dead_letters: Sequence[DeadLetterRequest] = (),
        replacing: Mapping[str, Replacing] | None = None,
    ) -> None:
        self.name = name
        self.progress = BatchProgress()
        self._has_state = has_state
        self._rewinds = rewinds
        self._replacing = replacing or {}
        self._identity = identity
        self._inputs = inputs
        self._checkpoint = checkpoint
        self._source = source
        self._offsets_max = offsets_max
        self._to_rows = to_rows
        self._clock = clock
        self._loads = loads
        self._report_maintenance = report_maintenance
        ledger = partial(
            Ledger, stage=name, inputs=inputs, identity=identity, emit=emit, clock=clock
        )
        self._ledgers = tuple(ledger(sink, later=(later or {}).get(sink.name)) for sink in sinks)
        self._triage = Triage(
            name,
            identity=identity,
            inputs=inputs,
            readings=source,
            journal=journal,
            budget=budget,
            clock=clock,
        )
        self._put_dead_letters = partial(
            put_dead_letters, name, self._ledgers, self._triage, source, dead_letters
        )
        self._losses = LossReporter(name, inputs=inputs, source=source, ledgers=self._ledgers)
        self._writer = BatchWriter(
            name,
            pipeline_uid=identity.pipeline_uid,
            ledgers=self._ledgers,
            triage=self._triage,
            check_topics=self._losses.check_topics,
            changes_nothing=lambda ranges: source.must_stay_whole and source.has_no_records(ranges),
            loads=loads,
            note_progress=self.progress.note,
        )
        self._busy = threading.Lock()
        self.gate = BatchGate()

    def open(self) -> None:
        """Shut out earlier drivers from every sink, and only then read the fences."""
        with self._busy:
            claims = {ledger.sink.name: ledger.claim for ledger in self._ledgers}
            self._loads.run({JOURNAL: self._triage.journal.claim, **claims})
            for ledger in self._ledgers:
                ledger.read()
            self._triage.read(ledger.fence for ledger in self._ledgers)
            start_later_sinks(self._ledgers)
            refuse_missing_fences(self.name, self._ledgers, self._checkpoint)
            do_rewinds(self.name, self._ledgers, self._triage, self._rewinds, self._replacing)
            refuse_older_rows(self.name, self._ledgers, self._replacing)

    def report_losses(self) -> None:
        """Report every fence, and set aside what can never be processed.

        Raises StageStopped, after all is reported, if an operator must decide how to go on.
        """
        with self._busy:
            stops = [*self._losses.report_topics(), *self._losses.set_aside()]
            for ledger in self._ledgers:
                with collect(stops):
                    ledger.report()
            raise_first(stops)

    def put_dead_letters(self, of: ReplayedLetters | None = None) -> Mapping[str, Problem | None]:
        """Write what a person asks for. Return why not, by the id of a command."""
        with self._busy:
            return self._put_dead_letters(replayed=of)

    def watch(self) -> None:
        """Report between batches what was hidden before, and losses that are new."""
        if self._busy.acquire(blocking=False):
            try:
                for ledger in self._ledgers:
                    if ledger.hidden:
                        ledger.report()
                raise_first(self._losses.set_aside())
                self._maintain()
            finally:
                self._busy.release()

    def resume(self) -> Vector:
        """Level the sinks. Return where a new query starts; empty: where its checkpoint is."""
        with self._busy:
            fences = {ledger.sink.name: ledger.fence for ledger in self._ledgers}
            plan = resume(self._inputs, read_planned(self.name, self._checkpoint), fences)
            if isinstance(plan, ContinueCheckpoint):
                return {}
            aside = self._checkpoint.move_aside()
            if aside is not None:
                moved = {"stage": self.name, "to": aside, "starts": str(plan.starts)}
                logger.warning("checkpoint does not fit the sinks and was moved aside", extra=moved)
            for ledger in self._ledgers:
                if ledger.sink.name in plan.missing:
                    self._level(ledger, plan.missing[ledger.sink.name])
            return plan.starts

    def has_hidden_rows(self) -> bool:
        """Return True if a sink has rows that its readers cannot see yet."""
        return any(ledger.hidden for ledger in self._ledgers)

    def positions(self) -> list[Mapping[TopicPartition, int]]:
        """Return where the next batch of each sink begins."""
        return [ledger.position() for ledger in self._ledgers]

    def move_claims(self) -> None:
        """Let no earlier driver commit a batch any more, in a table either."""
        with self._busy:
            self._loads.run({each.sink.name: each.move_claim for each in self._ledgers})

    def waits(self, longer_than_ms: int) -> tuple[SinkWait, ...]:
        """Return the sinks that have been writing one batch for longer than that."""
        return self._writer.waits(self._clock.now_ms() - longer_than_ms)

    def process(self, frame: Frame, batch_id: int) -> None:
        with self.gate.batch(), self._busy:
            with self.progress.batch():
                self._process(frame, batch_id)
            self._maintain()

    def replay(self, replays: Replays, readings: LetterReadings) -> None:
        """Bring dead letters to sinks that lack them. Wait in a pause. Raise StageClosed."""
        with self.gate.batch(), self._busy:
            Replaying(self._writer, readings, self._replacing, self._clock).run(replays)
            self._maintain()

    def replays_done(self) -> list[Vector]:
        """Return up to where each sink has the replays that name it."""
        return [ledger.replayed for ledger in self._ledgers]

    def close(self) -> None:
        """Wait for the running batch; none begins any more."""
        self.gate.close()

    def _process(self, frame: Frame, batch_id: int) -> None:
        batch = self._describe(batch_id)
        decision = self._decide(batch)
        if not batch.ranges and isinstance(decision, AlreadyDone):
            return  # Spark's first batch on empty topics: it takes nothing, so nothing changes
        lacking = decision.sinks if isinstance(decision, Write) else frozenset()
        reach(f"{self._identity.pipeline_uid}.{self.name}.before_read")
        for ledger in self._ledgers:
            if ledger.sink.name not in lacking:
                ledger.report()
        if not isinstance(decision, AlreadyDone):
            self._write(batch, [each for each in self._ledgers if each.sink.name in lacking], frame)
        self.progress.count()

    def _write(self, batch: Batch, into: Sequence[Ledger], frame: Frame) -> None:
        """Run the batch, in one piece or in several, and write it into these sinks."""
        pieces = self._pieces(batch.ranges, into)
        for piece in pieces:
            at_once = len(pieces) == 1 and not self._source.distributes(piece)
            first = partial(self._to_rows, frame) if at_once else None
            self._write_piece(replace(batch, runs=piece), into, first)

    def _write_piece(
        self, piece: Batch, into: Sequence[Ledger], first: Callable[[], BatchRows] | None = None
    ) -> None:
        """Write a piece into the sinks that get it; in the others it was set aside."""
        passing = [each for each in into if is_set_aside(piece.ranges, each.fence)]
        for ledger in passing:
            ledger.set_aside((), passed=ends_of([piece.ranges]))
        getting = [each for each in into if each not in passing]
        if getting or not into:  # one without sinks changes the state of its query
            try:
                self._writer.write(piece, getting, first)
            except BudgetExceeded as beyond:
                self._write_part(beyond, piece, getting)

    def _write_part(self, beyond: BudgetExceeded, piece: Batch, into: Sequence[Ledger]) -> None:
        """Write as much of a piece as the budget is enough for, and stop then."""
        if self._source.must_stay_whole:
            raise beyond.of_whole() from None
        if part := beyond.part_of(piece.ranges):
            lacking = [each for each in into if not has_all(each.position(), piece.ranges)]
            self._write_piece(replace(piece, runs=part), lacking)
        raise beyond

    def _pieces(self, ranges: Ranges, into: Sequence[Ledger]) -> tuple[Ranges, ...]:
        """Cut the ranges into parts that can be read at once. None of them has both records that a
        sink gets again and others, so that it stays known from which its new rows are made; and
        none has both records that were set aside and others.
        """
        again = [each for each in into if each.position() != each.frontier()]
        bounds = [ledger.frontier() for ledger in again]
        bounds += [edge for each in again for edge in edges_of(each.fence)]
        parts = in_parts(ranges, bounds)
        return tuple(piece for part in parts for piece in self._source.pieces(part))

    def _maintain(self) -> None:
        for kept in filter(None, (ledger.maintain() for ledger in self._ledgers)):
            self._report_maintenance(kept)

    def _describe(self, batch_id: int) -> Batch:
        report = planned(batch_id, self._checkpoint.lineage(), self._clock.now_ms())
        starts, ends = self._checkpoint.starts(batch_id), self._checkpoint.ends(batch_id)
        return Batch(report=report, runs=batch_runs(self._inputs, starts, ends))

    def _decide(self, batch: Batch) -> Write | RunOnly | AlreadyDone:
        """Return what the batch must do. Raise StageStopped if it does not fit the sinks."""
        fences = {ledger.sink.name: ledger.fence for ledger in self._ledgers}
        decision = decide(fences, batch.runs, bases_of(self._inputs), has_state=self._has_state)
        if isinstance(decision, Diverged):
            raise diverged(self.name, decision)
        return decision

    def _level(self, ledger: Ledger, missing: Ranges) -> None:
        """Give a sink what the others of the stage have and it lacks, as much as it may be."""
        levelled = {"stage": self.name, "sink": ledger.sink.name, "ranges": str(missing)}
        logger.warning("sink is levelled", extra=levelled)
        steps = (missing,) if self._source.must_stay_whole else in_steps(missing, self._offsets_max)
        for step in steps:
            for piece in self._pieces(step, [ledger]):
                batch = make_batch(self._ledgers, piece, self._clock.now_ms())
                self._write_piece(batch, [ledger])
