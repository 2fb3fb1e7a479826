"""Separates the records of a batch that give rows from those that never will: the dead ones.

For each batch `BatchWriter` calls, in this order:

1. `judge` reads the rows. Records that the journal already has are left out. Records that the
   decoder or a rule rejects come back as positions, and are read again completely.
2. If a value ends the query, `Search` reads parts of the batch until it has found the records that
   cause it. These are dead, and the rest is read again without them.
3. `record_dead` writes the dead records to their dead-letter topics, the facts about them, and the
   fence of the journal, in one transaction. This is done before any sink is written, so a sink
   never passes a record that is not reported. `Budget` limits how many; beyond it the stage stops.
4. The sinks are loaded. If one refuses rows, `judge_refused` finds the records in the same way.
   They are dead for this sink only: they are written to the journal, and the sink is loaded.

The last fence of the journal has all dead records that some sink has not passed yet. So a record
is judged and written once, however often its batch is repeated. Whatever fails only at a second
reading raises Retryable, because it was not reported.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Final

from waybill_shared.contract.batches import BatchReport, planned
from waybill_shared.contract.dead_letter_facts import DeadPositions
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.events import Fence
from waybill_shared.contract.vectors import Vector
from waybill_shared.contract.words import DeadReason, StopReason
from waybill_shared.process.clock import Clock
from waybill_spark.tracking.batch import NO_BATCH, Batch
from waybill_spark.tracking.batch_rows import BatchRows
from waybill_spark.tracking.commits import Identity
from waybill_spark.tracking.dead_letters.budget import Budget, BudgetExceeded
from waybill_spark.tracking.dead_letters.positions import (
    Position,
    ahead,
    find_dead,
    group,
    positions_in,
)
from waybill_spark.tracking.dead_letters.records import (
    MESSAGE_CHARACTERS_MAX,
    DeadCause,
    DeadLetterRecord,
    Place,
    QueryFailed,
    RejectedRecord,
    Without,
    merge_positions,
    positions_of,
)
from waybill_spark.tracking.dead_letters.searching import Search, SearchProgress
from waybill_spark.tracking.fencing import StageInput
from waybill_spark.tracking.pieces import Ranges
from waybill_spark.tracking.ports import JOURNAL, DeadJournal, Readings
from waybill_spark.tracking.sink import RowsRefused, Sink, SinkSuperseded
from waybill_spark.tracking.stopping import StageStopped

logger = logging.getLogger(__name__)

UNLIMITED: Final = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    rows: BatchRows
    dead: tuple[DeadLetterRecord, ...] = ()


class Triage:
    """Callers see to it that one thread at a time is in here."""

    def __init__(
        self,
        stage: str,
        *,
        identity: Identity,
        inputs: tuple[StageInput, ...],
        readings: Readings,
        journal: DeadJournal,
        budget: Budget,
        clock: Clock,
    ) -> None:
        self.journal = journal
        self._stage = stage
        self._identity = identity
        self._ids = {i.topic: i.topic_id for i in inputs}
        self._readings = readings
        self._budget = budget
        self._clock = clock
        self._fence: Fence | None = None
        self._search = Search(stage, readings, self._refuse_beyond_budget, clock)

    @property
    def sequence(self) -> int:
        """The number of the last fact that was reported of the stage."""
        return 0 if self._fence is None else self._fence.batch.sequence

    def read(self, fences: Iterable[Fence | None]) -> None:
        """Read the last entry from the journal, after all was claimed. `fences`: of the sinks."""
        fence = self._fence = self.journal.last()
        if self._identity.is_before(fence):
            raise SinkSuperseded(f"journal of stage {self._stage}: it is of a later claim")
        passed = max((each.batch.dead_sequence for each in fences if each is not None), default=0)
        if passed > self.sequence:
            detail = (
                f"stage {self._stage}: its sinks are past entry {passed} of its dead letters, and"
                f" the newest that there is has number {self.sequence}"
            )
            hint = "restore Kafka's topics; or delete the pipeline and apply it again"
            raise StageStopped(StopReason.CHECKPOINT_DIVERGED, detail, hint)

    @contextmanager
    def read_from(self, readings: Readings) -> Iterator[None]:
        """Judge what these readings give, for a replay. The budget does not count what dies then:
        it has died before, and a replay that exceeds it would stop each driver.
        """
        own, budget = self._readings, self._budget
        self._readings = self._search.readings = readings
        self._budget = Budget(UNLIMITED, 0)
        try:
            yield
        finally:
            self._readings = self._search.readings = own
            self._budget = budget

    @property
    def search(self) -> SearchProgress | None:
        """The progress of the search for bad records; None if there is none."""
        return self._search.progress

    def judge(
        self, batch: Batch, into: Iterable[str], first: Callable[[], BatchRows] | None
    ) -> Judged:
        """Return the rows of a batch, and its dead records, which are not written yet. `into`: the
        keys of its sinks; `first` reads the whole batch, for less than a reading of its ranges.
        """
        known = self.find_dead(batch, *into)
        try:
            rows = first() if first and not known else self._readings.read(batch.ranges, known)
            failed: tuple[DeadLetterRecord, ...] = ()
        except QueryFailed as failure:
            failed = self._search.find_failing(batch.ranges, known, failure, _cause_of_failure)
            known = merge_positions(known, positions_of(each.record for each in failed))
            rows = self._read(batch.ranges, known)
        with ExitStack() as stack:
            stack.callback(rows.close)
            dead = (*failed, *self._find_dead(rows.dead, failed))
            stack.pop_all()
        return Judged(rows=rows, dead=dead)

    def judge_refused(self, batch: Batch, sink: Sink, key: str, why: RowsRefused) -> Judged:
        """Return the rows for a sink without those that it refuses, and the refused records."""
        known = self.find_dead(batch, key)

        def refusal_of(rows: BatchRows) -> DeadCause | None:
            said = sink.find_refusal(rows.by_sink[sink.name].to_batches())
            return None if said is None else _cause_of_refusal(said, key)

        cause = _cause_of_refusal(str(why), key)
        found = self._search.find_refused(batch.ranges, known, cause, refusal_of, self.read_again)
        without = merge_positions(known, positions_of(each.record for each in found))
        return Judged(rows=self.read_again(batch.ranges, without), dead=found)

    def read_again(self, ranges: Ranges, without: Without) -> BatchRows:
        """Return the rows that were judged. Raise Retryable if there is a dead record: it would not
        be reported.
        """
        rows = self._read(ranges, without)
        if rows.dead:
            rows.close()
            count = len(rows.dead)
            raise Retryable(f"stage {self._stage}: {count} record(s) die only at a second look")
        return rows

    def recall(self, starts: Vector) -> None:
        """Note again what died from `starts` on, because its batches come again. The journal gets
        a new fence, and no record.
        """
        past = self.journal.past(starts) if self.sequence else ()
        known = [position for each in past for position in positions_in(each)]
        if set(known) <= set(self._entries()):
            return
        batch = Batch(report=planned(NO_BATCH, "", self._clock.now_ms()), runs=())
        dead = group([*self._entries(), *known])
        self._fence = self.journal.write((), self._next(batch, 0, dead))
        left_out = {"stage": self._stage, "records": len(known)}
        logger.warning("records that died before are left out", extra=left_out)

    def record_dead(
        self,
        dead: tuple[DeadLetterRecord, ...],
        batch: Batch,
        reached: Vector,
        sinks: Iterable[str] = (),
        *,
        into: Sequence[str],
    ) -> None:
        """Write dead letters to the journal, without those that it has already.

        `reached`: the positions that all sinks have reached. `sinks`: the keys of the only sinks
        that lack these letters; empty if all sinks do. `into`: the keys of all that get the batch.
        """
        known = set(self._entries())
        letters = [_of_sink(one, sink) for sink in sinks for one in dead] or [
            letter for one in dead for letter in self._for_those_left(one, known, into)
        ]
        new = [each for each in letters if self._position(each) not in known]
        if not new:
            return
        self._budget.spend(len(dead), self._clock.now_ms())
        kept = [each for each in self._entries() if ahead(each, reached)]
        dead_now = group([*kept, *(self._position(each) for each in new)])
        self._fence = self.journal.write(new, self._next(batch, len(new), dead_now))
        written = {"stage": self._stage, "records": len(new), "sequence": self.sequence}
        logger.warning("records went to a dead-letter topic", extra=written)

    def _for_those_left(
        self, dead: DeadLetterRecord, known: Collection[Position], into: Sequence[str]
    ) -> list[DeadLetterRecord]:
        """Return the letter; where the record has died for some of the sinks before, one for each
        that is left."""
        topic_id, partition, offset, sink = self._position(dead)
        left = [key for key in into if (topic_id, partition, offset, key) not in known]
        if sink is not None or len(left) == len(into):
            return [dead]
        return [_of_sink(dead, key) for key in left]

    def _next(self, batch: Batch, rows: int, dead: tuple[DeadPositions, ...]) -> Fence:
        """Return the fence of the journal after the present one."""
        return Fence(
            tenant=self._identity.tenant,
            pipeline_uid=self._identity.pipeline_uid,
            stage=self._stage,
            sink=JOURNAL,
            generation=self._identity.generation,
            epoch=self._identity.epoch,
            lifecycle_id=self._identity.lifecycle_id,
            inputs=batch.ranges,
            frontier={},
            outputs=(),
            batch=self._report(batch, rows),
            dead=dead,
        )

    def _report(self, batch: Batch, rows: int) -> BatchReport:
        of = batch.report
        started = planned(of.batch_id, of.lineage, self._clock.now_ms())
        return replace(started, sequence=self.sequence + 1, rows=rows)

    def find_dead(self, batch: Batch, *into: str) -> Without:
        """Return the records of the batch that are dead letters in each of these sinks."""
        return find_dead(() if self._fence is None else self._fence.dead, batch.ranges, into)

    def _read(self, ranges: Ranges, without: Without) -> BatchRows:
        try:
            return self._readings.read(ranges, without)
        except QueryFailed as failure:
            text = f"stage {self._stage}: it failed only at a second look: {failure}"
            raise Retryable(text) from failure

    def _find_dead(
        self, rejected: Sequence[RejectedRecord], failed: Sequence[DeadLetterRecord]
    ) -> tuple[DeadLetterRecord, ...]:
        count = len(rejected) + len(failed)
        if rejected and count > self._budget.remaining(self._clock.now_ms()):
            one = [*failed, *self._whole(rejected[:1])][-1]
            places = [each.record.place for each in failed] + [each.place for each in rejected]
            self._refuse_beyond_budget(places, one.record.place, one.cause)
        return self._whole(rejected)

    def _whole(self, rejected: Sequence[RejectedRecord]) -> tuple[DeadLetterRecord, ...]:
        """Return all of them. Raise Retryable if one was deleted since it was judged: it would not
        be reported.
        """
        found = self._readings.dead(rejected) if rejected else ()
        if len(found) != len(rejected):
            left = f"{len(found)} of {len(rejected)} dead records are still there"
            raise Retryable(f"stage {self._stage}: {left}")
        return found

    def _refuse_beyond_budget(
        self, places: Collection[Place], last: Place, cause: DeadCause
    ) -> None:
        now, count = self._clock.now_ms(), len(places)
        if count <= self._budget.remaining(now):
            return
        topic, partition, offset = last
        at, seconds = f"{topic}[{partition}]@{offset}", self._budget.window_ms // 1000
        detail = (
            f"stage {self._stage}: {count} record(s) of one batch would go to a dead-letter topic,"
            f" and the budget is {self._budget.records} in {seconds} s; one is {at}:"
            f" {cause.message}"
        )
        hint = (
            "mend the producer or the manifest, or raise deadLetter.budget; each start has a fresh"
            " budget, and puts as many records aside"
        )
        raise BudgetExceeded(detail, hint, self._budget.find_too_many(places, now))

    def _entries(self) -> list[Position]:
        dead = () if self._fence is None else self._fence.dead
        return [position for each in dead for position in positions_in(each)]

    def _position(self, dead: DeadLetterRecord) -> Position:
        """Return where batches leave it out: in its topic, or among the replays."""
        topic, partition, offset = dead.record.place
        replayed = dead.record.replayed
        topic_id = self._ids[topic] if replayed is None else replayed.topic_id
        return (topic_id, partition, offset, dead.cause.sink)


def _of_sink(dead: DeadLetterRecord, sink: str) -> DeadLetterRecord:
    return replace(dead, cause=replace(dead.cause, sink=sink))


def _cause_of_failure(failure: QueryFailed) -> DeadCause:
    message = str(failure)[:MESSAGE_CHARACTERS_MAX]
    return DeadCause(reason=DeadReason.FAILED, message=message, error=failure.error)


def _cause_of_refusal(said: str, sink: str) -> DeadCause:
    message = said[:MESSAGE_CHARACTERS_MAX]
    return DeadCause(
        reason=DeadReason.REFUSED, message=message, sink=sink, error=RowsRefused.__name__
    )
