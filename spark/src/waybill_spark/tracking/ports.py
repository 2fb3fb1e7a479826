"""What a tracked stage needs from outside, besides its sinks and its checkpoint."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Protocol

from waybill_shared.contract.dead_letter_facts import DeadPositions
from waybill_shared.contract.events import Fence
from waybill_shared.contract.vectors import Vector
from waybill_spark.tracking.batch_rows import BatchRows
from waybill_spark.tracking.dead_letters.records import (
    DeadLetterRecord,
    FailingRecord,
    RawRecord,
    RejectedRecord,
    Without,
)
from waybill_spark.tracking.pieces import Ranges

JOURNAL: Final = "!dead"  # no sink can have this name


class DeadJournal(Protocol):
    """The journal of dead records. A record, its fact and the fence are there together or not at
    all."""

    def claim(self) -> None:
        """Shut out every earlier driver; may be repeated."""

    def last(self) -> Fence | None:
        """Return the newest entry, read after `claim`."""

    def past(self, starts: Vector) -> tuple[DeadPositions, ...]:
        """Return what was ever reported of the stage from `starts` on, by the facts."""

    def write(self, records: Sequence[DeadLetterRecord], fence: Fence) -> Fence:
        """Write an entry, and return its fence with the number of the last fact; `fence` has that
        of the first. Raises SinkSuperseded if a later driver has claimed it.
        """

    def close(self) -> None: ...


class PlannedRecords(Protocol):
    """Records that are planned once: a few of them are read again and again at little cost."""

    def check(self, ranges: Ranges, without: Without) -> None:
        """Raise QueryFailed if a value of these records ends the query."""

    def find_failing(self, ranges: Ranges, without: Without) -> Iterator[FailingRecord]:
        """Yield those of these records that end the query alone. It may miss some."""

    def read(self, ranges: Ranges, without: Without) -> BatchRows:
        """Return the rows of these records, and nothing of those that give none."""


class Readings(Protocol):
    """The topics of the stage, read again. Each call raises Retryable."""

    def read(self, ranges: Ranges, without: Without) -> BatchRows:
        """Return the rows of exactly these records for each sink. Raise QueryFailed if a value ends
        the query.
        """

    def plan_records(self, ranges: Ranges, without: Without) -> PlannedRecords | None:
        """Return these records for a search; None if they are too many, or if rows of one depend on
        others."""

    def dead(self, rejected: Sequence[RejectedRecord]) -> tuple[DeadLetterRecord, ...]:
        """Return the complete records that `read` reported, without those that do not exist any
        more.
        """

    def raw(self, positions: Without) -> tuple[RawRecord, ...]:
        """Return the records as they are in their topics, without those that do not exist any
        more.
        """


class Source(Readings, Protocol):
    """The topics that a stage reads, outside of its query. Each call raises Retryable."""

    def ids(self, wanted: Mapping[str, str]) -> Mapping[str, str]:
        """Return the ids by name of topics that had those of `wanted`, without deleted ones.
        An answer that differs from `wanted` is certain."""

    def starts(self, topic: str, frontier: Mapping[int, int]) -> Mapping[int, int]:
        """Return the first offset that each partition still has; certain where `frontier` ends
        before it."""

    @property
    def must_stay_whole(self) -> bool:
        """True if a batch must stay in one piece, because each write replaces the one before."""

    def has_no_records(self, ranges: Ranges) -> bool:
        """Return True if readers find no record: only transaction markers and aborted records."""

    def pieces(self, ranges: Ranges) -> tuple[Ranges, ...]:
        """Cut `ranges` into parts small enough to be read at once, one after the other."""

    def distributes(self, ranges: Ranges) -> bool:
        """Return True if `read` leaves their rows with the executors, because there are so many."""
