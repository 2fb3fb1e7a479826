"""Finds the records of a batch that end its query, or that a sink refuses.

`bisecting` says which records are tried. A trial of many records reads them from Kafka. As soon as
they are few enough, they are planned once. Then Spark finds those that end the query, and a sink is
asked without any job. What depends on several records together is read from Kafka each time.
"""

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Final

from waybill_shared.contract.events import Range
from waybill_shared.process.clock import Clock
from waybill_spark.tracking.batch_rows import BatchRows
from waybill_spark.tracking.dead_letters.bisecting import Found, Trial, find_culprits
from waybill_spark.tracking.dead_letters.records import (
    DeadCause,
    DeadLetterRecord,
    Place,
    QueryFailed,
    Without,
    merge_positions,
)
from waybill_spark.tracking.pieces import Ranges, are_within, offsets
from waybill_spark.tracking.ports import PlannedRecords, Readings

logger = logging.getLogger(__name__)

AtOnce = Callable[[PlannedRecords, Ranges, Without], DeadCause | None]
"""Returns why planned records fail, without those that are left out."""
Singles = Iterator[tuple[Place, DeadCause, int]]
"""Records that fail alone, each with how many others were not tried yet."""
FindAlone = Callable[[PlannedRecords, Ranges, Without], Singles]
"""Finds those of planned records that fail alone, without those that are left out."""
REPORT_MS: Final = 2_000  # each report of progress is an event


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchProgress:
    """A search that goes on. `left`: how many records are not tried yet, at most."""

    since: int
    at: int
    found: int
    left: int


class Search:
    """Searches of one stage, one after the other. `refuse`: raises an error if these dead records
    are too many; it gets the last one, too."""

    def __init__(
        self,
        stage: str,
        readings: Readings,
        refuse: Callable[[Collection[Place], Place, DeadCause], None],
        clock: Clock,
    ) -> None:
        self.progress: SearchProgress | None = None
        self.readings = readings
        self._stage = stage
        self._refuse = refuse
        self._clock = clock

    def find_failing(
        self,
        ranges: Ranges,
        known: Without,
        why: QueryFailed,
        cause_of: Callable[[QueryFailed], DeadCause],
    ) -> tuple[DeadLetterRecord, ...]:
        """Return the records with values that end the query. `known`: those that are dead already,
        which are left out."""

        def read(ranges: Ranges, found: Without) -> DeadCause | None:
            try:
                self.readings.read(ranges, merge_positions(known, found)).close()
            except QueryFailed as again:
                return cause_of(again)
            return None

        def check(records: PlannedRecords, ranges: Ranges, found: Without) -> DeadCause | None:
            try:
                records.check(ranges, found)
            except QueryFailed as again:
                return cause_of(again)
            return None

        def find_alone(records: PlannedRecords, ranges: Ranges, found: Without) -> Singles:
            for each in records.find_failing(ranges, found):
                yield each.place, cause_of(each.why), each.left

        trials = _Trials(read=read, check=check, find_alone=find_alone)
        return self._find(ranges, known, cause_of(why), trials)

    def find_refused(
        self,
        ranges: Ranges,
        known: Without,
        why: DeadCause,
        refusal_of: Callable[[BatchRows], DeadCause | None],
        read_again: Callable[[Ranges, Without], BatchRows],
    ) -> tuple[DeadLetterRecord, ...]:
        """Return the records that a sink refuses. `read_again`: returns rows that were judged."""

        def read(ranges: Ranges, found: Without) -> DeadCause | None:
            with closing(read_again(ranges, merge_positions(known, found))) as rows:
                return refusal_of(rows)

        def check(records: PlannedRecords, ranges: Ranges, found: Without) -> DeadCause | None:
            try:
                return refusal_of(records.read(ranges, found))
            except QueryFailed:
                return read(ranges, found)

        return self._find(ranges, known, why, _Trials(read=read, check=check))

    def _find(
        self, ranges: Ranges, known: Without, why: DeadCause, trials: "_Trials"
    ) -> tuple[DeadLetterRecord, ...]:
        """Find them one after the other, and no more than may be dead."""
        logger.warning("looking for records", extra={"stage": self._stage, "reason": why.message})
        now, left = self._clock.now_ms(), offsets(ranges)
        self.progress = SearchProgress(since=now, at=now, found=0, left=left)
        causes: dict[Place, DeadCause] = {}
        run = _Run(
            _Plans(self.readings, known),
            trials,
            left,
            lambda left: self._report(len(causes), left),
        )
        try:
            for one, cause in find_culprits(ranges, why, trials.read, run.try_quickly, run.alone):
                place = (one.topic, one.partition, one.start)
                causes[place] = cause
                self._refuse(causes, place, cause)
        finally:
            self.progress = None
        for message, number in Counter(each.message for each in causes.values()).items():
            found = {"stage": self._stage, "reason": message, "records": number}
            logger.warning("records found", extra=found)
        return tuple(
            DeadLetterRecord(record=each, cause=causes[each.place])
            for each in self.readings.raw(_positions(causes))
        )

    def _report(self, found: int, left: int) -> None:
        now, before = self._clock.now_ms(), self.progress
        if before is not None and now - before.at >= REPORT_MS:
            self.progress = SearchProgress(since=before.since, at=now, found=found, left=left)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trials:
    """The ways to try records: read from Kafka, or planned. `find_alone`: finds those that fail
    alone at once, if that can be."""

    read: Trial
    check: AtOnce
    find_alone: FindAlone | None = None


class _Run:
    """A search that goes on. `left`: how many records are not tried yet, at most."""

    def __init__(
        self, plans: "_Plans", trials: _Trials, left: int, report: Callable[[int], None]
    ) -> None:
        self._plans = plans
        self._trials = trials
        self._left = left
        self._report = report

    def try_quickly(self, ranges: Ranges, found: Without) -> DeadCause | None:
        """Return why these records fail. It may miss that."""
        records, count = self._plans.of(ranges), offsets(ranges)
        if records is None:
            why = self._trials.read(ranges, found)
        else:
            why = self._trials.check(records, ranges, found)
        self._note(self._left - count if why is None or count == 1 else self._left)
        return why

    def alone(self, ranges: Ranges, found: Without) -> Found | None:
        """Return the records that fail alone; None if they cannot be found at once."""
        if self._trials.find_alone is None or (records := self._plans.of(ranges)) is None:
            return None
        return self._look(self._trials.find_alone(records, ranges, found), ranges)

    def _look(self, singles: Singles, ranges: Ranges) -> Found:
        others = self._left - offsets(ranges)
        for place, cause, left in singles:
            self._note(others + left)
            yield _range_of(place, ranges), cause
        self._note(others)

    def _note(self, left: int) -> None:
        self._left = max(0, left)
        self._report(self._left)


def _positions(places: Iterable[Place]) -> Without:
    found: dict[tuple[str, int], set[int]] = {}
    for topic, partition, offset in places:
        found.setdefault((topic, partition), set()).add(offset)
    return {place: frozenset(offsets) for place, offsets in found.items()}


def _range_of(place: Place, ranges: Ranges) -> Range:
    """Return the record as a part of these ranges."""
    topic, partition, offset = place
    run = next(
        run
        for run in ranges
        if (run.topic, run.partition) == (topic, partition) and run.start <= offset < run.end
    )
    return replace(run, start=offset, end=offset + 1)


class _Plans:
    """The plan that a search uses now: the search goes from one part of its records to the next."""

    def __init__(self, readings: Readings, known: Without) -> None:
        self._readings = readings
        self._known = known
        self._last: tuple[Ranges, PlannedRecords] | None = None

    def of(self, ranges: Ranges) -> PlannedRecords | None:
        """Return the planned records; None if they are still too many."""
        if self._last is None or not are_within(ranges, self._last[0]):
            records = self._readings.plan_records(ranges, self._known)
            self._last = None if records is None else (ranges, records)
        return None if self._last is None else self._last[1]
