"""Finds the records of a batch that end its query, or that a sink refuses.

`bisecting` says which records are tried. A trial of many records reads them from Kafka. As soon as
they are few enough, they are planned once, and a trial costs one job of that plan, or no job at
all where a sink is asked. What depends on several records together is read from Kafka each time.
"""

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing

from waybill_spark.tracking.batch_rows import BatchRows
from waybill_spark.tracking.dead_letters.bisecting import Trial, find_culprits
from waybill_spark.tracking.dead_letters.records import (
    DeadCause,
    DeadLetterRecord,
    QueryFailed,
    Without,
    merge_positions,
)
from waybill_spark.tracking.pieces import Ranges, are_within
from waybill_spark.tracking.ports import PlannedRecords, Readings

logger = logging.getLogger(__name__)

AtOnce = Callable[[PlannedRecords, Ranges, Without], DeadCause | None]
"""Returns why planned records fail, without those that are left out."""


class Search:
    """`known`: records that are dead already. `refuse`: raises an error if so many are too many."""

    def __init__(
        self,
        stage: str,
        readings: Readings,
        known: Without,
        refuse: Callable[[Sequence[DeadLetterRecord]], None],
    ) -> None:
        self._stage = stage
        self._readings = readings
        self._known = known
        self._refuse = refuse
        self._planned: tuple[Ranges, PlannedRecords] | None = None

    def find_failing(
        self, ranges: Ranges, why: QueryFailed, cause_of: Callable[[QueryFailed], DeadCause]
    ) -> tuple[DeadLetterRecord, ...]:
        """Return the records with values that end the query."""

        def read(ranges: Ranges, found: Without) -> DeadCause | None:
            try:
                self._readings.read(ranges, merge_positions(self._known, found)).close()
            except QueryFailed as again:
                return cause_of(again)
            return None

        def check(records: PlannedRecords, ranges: Ranges, found: Without) -> DeadCause | None:
            try:
                records.check(ranges, found)
            except QueryFailed as again:
                return cause_of(again)
            return None

        return self._find(ranges, cause_of(why), read, check)

    def find_refused(
        self,
        ranges: Ranges,
        why: DeadCause,
        refusal_of: Callable[[BatchRows], DeadCause | None],
        read_again: Callable[[Ranges, Without], BatchRows],
    ) -> tuple[DeadLetterRecord, ...]:
        """Return the records that a sink refuses. `read_again`: returns rows that were judged."""

        def read(ranges: Ranges, found: Without) -> DeadCause | None:
            with closing(read_again(ranges, merge_positions(self._known, found))) as rows:
                return refusal_of(rows)

        def check(records: PlannedRecords, ranges: Ranges, found: Without) -> DeadCause | None:
            try:
                return refusal_of(records.read(ranges, found))
            except QueryFailed:
                return read(ranges, found)

        return self._find(ranges, why, read, check)

    def _find(
        self, ranges: Ranges, why: DeadCause, read: Trial, check: AtOnce
    ) -> tuple[DeadLetterRecord, ...]:
        """Find them one after the other, and no more than may be dead."""
        logger.warning("looking for records", extra={"stage": self._stage, "reason": why.message})

        def quick(ranges: Ranges, found: Without) -> DeadCause | None:
            records = self._plan(ranges)
            return read(ranges, found) if records is None else check(records, ranges, found)

        dead: list[DeadLetterRecord] = []
        for run, cause in find_culprits(ranges, why, read, quick):
            place = (run.topic, run.partition)
            records = self._readings.raw({place: frozenset([run.start])})
            dead += [DeadLetterRecord(record=record, cause=cause) for record in records]
            self._refuse(dead)
        for message, number in Counter(each.cause.message for each in dead).items():
            found = {"stage": self._stage, "reason": message, "records": number}
            logger.warning("records found", extra=found)
        return tuple(dead)

    def _plan(self, ranges: Ranges) -> PlannedRecords | None:
        """Return the planned records; None if they are still too many."""
        if self._planned is None or not are_within(ranges, self._planned[0]):
            records = self._readings.plan_records(ranges, self._known)
            self._planned = None if records is None else (ranges, records)
        return None if self._planned is None else self._planned[1]
