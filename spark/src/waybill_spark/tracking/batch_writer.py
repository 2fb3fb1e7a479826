"""Writes a batch into sinks of a stage: its dead letters are reported first, then all sinks
load.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial, reduce

from waybill_shared.contract.driver_news import SinkWait
from waybill_shared.contract.vectors import meet
from waybill_shared.contract.words import Obstacle
from waybill_shared.process.failpoints import reach
from waybill_spark.tracking.batch import Batch
from waybill_spark.tracking.batch_rows import BatchRows
from waybill_spark.tracking.dead_letters.records import Without
from waybill_spark.tracking.dead_letters.triage import Judged, Triage
from waybill_spark.tracking.distributed_rows import Rows
from waybill_spark.tracking.ledger import Ledger
from waybill_spark.tracking.loads import Loads
from waybill_spark.tracking.pieces import Ranges
from waybill_spark.tracking.sink import RowsRefused


class BatchWriter:
    """Writes batches into the sinks of a stage.

    `ledgers` are of all its sinks. `check_topics` raises an error if rows that were just read may
    be of another topic of that name. `changes_nothing` is for rows that replace all that is there:
    it returns True if ranges hold no record, and so say nothing of what should be there.
    `note_progress` is called after each step, with the rows that a sink got by it.
    """

    def __init__(
        self,
        stage: str,
        *,
        pipeline_uid: str,
        ledgers: Sequence[Ledger],
        triage: Triage,
        check_topics: Callable[[], None],
        changes_nothing: Callable[[Ranges], bool],
        loads: Loads,
        note_progress: Callable[..., None],
    ) -> None:
        self.stage = stage
        self._uid = pipeline_uid
        self.ledgers = ledgers
        self.triage = triage
        self._check_topics = check_topics
        self._changes_nothing = changes_nothing
        self._loads = loads
        self._note_progress = note_progress

    def write(
        self,
        batch: Batch,
        into: Sequence[Ledger],
        first: Callable[[], BatchRows] | None = None,
    ) -> None:
        """Write the batch into these sinks. `first` reads all of it the first time."""
        judged = self.triage.judge(batch, [each.key for each in into], first)
        self._note_progress()
        if not (judged.dead or judged.rows.any_row) and self._changes_nothing(batch.ranges):
            batch = replace(batch, has_no_records=True)
        with ExitStack() as stack:
            stack.enter_context(closing(judged.rows))
            self._record_dead(judged, batch, into, self._find_lacking(into))
            self._note_progress()
            refused = self._load(judged.rows, self._with_facts(batch, judged), into, stack)
        for ledger, why in refused:
            judged = self.triage.judge_refused(batch, ledger.sink, ledger.key, why)
            with closing(judged.rows):
                self._record_dead(judged, batch, [ledger])
                mine = judged.rows.by_sink[ledger.sink.name]
                ledger.write(mine, self._with_facts(batch, judged))
                self._note_progress(mine.num_rows)

    def waits(self, latest: int) -> tuple[SinkWait, ...]:
        """Return the sinks that have been writing one batch since before `latest`; all of them if
        the batch fails and its bad records are looked for.
        """
        if (search := self.triage.search) is not None and search.since < latest:
            said = f"{search.found} found, {search.left} left to try"
            found = {"blocked_by": Obstacle.SEARCHING, "message": said}
            return tuple(
                SinkWait(stage=self.stage, sink=ledger.sink.name, **found)
                for ledger in self.ledgers
            )
        return tuple(
            SinkWait(stage=self.stage, sink=ledger.sink.name, blocked_by=Obstacle.BATCH_RUNNING)
            for ledger in self.ledgers
            for since in [ledger.loading_since]
            if since is not None and since < latest
        )

    def _find_lacking(self, into: Sequence[Ledger]) -> list[str]:
        """Return the sinks that lack the dead records of the batch, where others have it
        already.
        """
        return [ledger.key for ledger in into] if len(into) < len(self.ledgers) else []

    def _record_dead(
        self,
        judged: Judged,
        batch: Batch,
        into: Sequence[Ledger],
        lacking: Iterable[str] = (),
    ) -> None:
        self._check_topics()
        for ledger in into if judged.dead else ():
            ledger.move_claim()
        reached = reduce(meet, [ledger.end_of_all() for ledger in self.ledgers])
        keys = [ledger.key for ledger in into]
        self.triage.record_dead(judged.dead, batch, reached, lacking, into=keys)
        if judged.dead:
            reach(f"{self._uid}.{self.stage}.after_journal")

    def _with_facts(self, batch: Batch, judged: Judged) -> Batch:
        """Return the batch with what was found when its records were read."""
        dead, dropped = self.triage.sequence, dict(judged.rows.dropped)
        return replace(batch, report=replace(batch.report, dead_sequence=dead, dropped=dropped))

    def _load(
        self, rows: BatchRows, batch: Batch, into: Sequence[Ledger], stack: ExitStack
    ) -> list[tuple[Ledger, RowsRefused]]:
        """Load all sinks at the same time. Return those that refused rows, and why."""
        refused: list[tuple[Ledger, RowsRefused]] = []
        known = self.triage.find_dead(batch, *(each.key for each in into))

        def load(ledger: Ledger, mine: Rows) -> None:
            try:
                ledger.write(mine, batch)
                self._note_progress(mine.num_rows)
            except RowsRefused as why:
                refused.append((ledger, why))
                self._note_progress()

        self._loads.run(
            {
                ledger.sink.name: partial(load, ledger, mine.by_sink[ledger.sink.name])
                for ledger in into
                for mine in [self._rows_for(ledger, rows, batch, known, stack)]
            }
        )
        return refused

    def _rows_for(
        self, ledger: Ledger, rows: BatchRows, batch: Batch, known: Without, stack: ExitStack
    ) -> BatchRows:
        """Return the rows without those that this sink has refused before, and others of the batch
        have not. `known`: the records that are dead for all of these."""
        dead = self.triage.find_dead(batch, ledger.key)
        if dead == known:
            return rows
        return stack.enter_context(closing(self.triage.read_again(batch.ranges, dead)))
