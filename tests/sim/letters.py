"""Records of letters as a stage processes them again. Fulfils
`waybill_spark.tracking.replaying.LetterReadings`.
"""

from collections.abc import Callable, Sequence

from sim.effects import transform
from sim.graves import FAILING, MALFORMED, fate
from sim.log import Place, Row
from sim.sinks import Batch, Storage
from waybill_shared.contract.replays import LetterReplay
from waybill_shared.contract.words import DeadReason
from waybill_spark.tracking.batch_rows import BatchRows
from waybill_spark.tracking.dead_letters.records import (
    DeadCause,
    DeadLetterRecord,
    QueryFailed,
    RawRecord,
    RejectedRecord,
)


class SimLetters:
    """What does not fit dies by the mood in which the driver began, as in batches."""

    def __init__(
        self,
        uid: str,
        stage: str,
        sinks: Sequence[str],
        storage: Storage,
        edge: Callable[[str], None],
    ) -> None:
        self._uid = uid
        self._stage = stage
        self.does = stage
        """The first name of the stage: what it makes of a row is by that."""
        self._sinks = sinks
        self._storage = storage
        self._mood = storage.mood
        self._edge = edge

    def find(self, letters: Sequence[LetterReplay]) -> list[RawRecord | None]:
        self._edge(f"{self._stage}.letters_read")
        gone = self._storage.replays.gone
        return [None if each.letter in gone else _record(each) for each in letters]

    def rows(self, records: Sequence[RawRecord]) -> BatchRows:
        read = [(record, self._row(record)) for record in records]
        alive = [(record, row) for record, row in read if not self._malformed(row)]
        if any(fate(self._storage.mood, self._stage, row) == FAILING for _, row in alive):
            raise QueryFailed("a value ends the query", "ArithmeticException")
        rows = tuple(out for _, row in alive for out in transform(self._uid, self.does, row))
        batch = Batch(rows, tuple(_place(record) for record, _ in alive))
        dead = tuple(_reject(record) for record, row in read if self._malformed(row))
        return BatchRows(dict.fromkeys(self._sinks, batch), dead=dead)

    def plan_records(self, records: Sequence[RawRecord]) -> None:
        """Plan nothing: each trial of a search reads."""

    def die(self, record: RawRecord, verdict: int) -> DeadLetterRecord:
        death = DeadCause(reason=DeadReason.MALFORMED, message="")
        return DeadLetterRecord(record=record, cause=death)

    def _row(self, record: RawRecord) -> Row:
        return self._storage.cluster.row_at(_place(record))

    def _malformed(self, row: Row) -> bool:
        return fate(self._mood, self._stage, row) == MALFORMED


def _record(asked: LetterReplay) -> RawRecord:
    return RawRecord(
        topic=asked.topic,
        partition=asked.partition,
        offset=asked.letter.source,
        key=None,
        value=None,
    )


def _place(record: RawRecord) -> Place:
    at = record.replayed
    assert at is not None, "it is read for a replay"
    return Place(at.topic_id, at.partition, at.offset)


def _reject(record: RawRecord) -> RejectedRecord:
    return RejectedRecord(
        topic=record.topic, partition=record.partition, offset=record.offset, verdict=0
    )
