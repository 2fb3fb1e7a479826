"""Dead letters that are replayed into a stage of the graveyard, and their messages."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from unit.waybill_spark.bench import TOPIC, ListSink
from unit.waybill_spark.graveyard import GravePlan, Graveyard
from waybill_shared.contract.dead_letters import LetterId
from waybill_shared.contract.events import Fence
from waybill_shared.contract.replays import LetterReplay
from waybill_shared.contract.vectors import TopicPartition
from waybill_shared.contract.words import DeadReason
from waybill_spark.tracking.batch_rows import BatchRows
from waybill_spark.tracking.dead_letters.records import (
    DeadCause,
    DeadLetterRecord,
    QueryFailed,
    RawRecord,
    RejectedRecord,
)
from waybill_spark.tracking.replaying import Letter, Replays

REPLAYS = "waybill.replays"
REPLAYS_ID = "P1"
AT = (REPLAYS_ID, 3)
"""The partition of the pipeline."""
FIRST, SECOND = "load/first@1", "load/second@1"
BOTH = (FIRST, SECOND)


@dataclass
class Letters:
    """Messages of `waybill.replays` with the letters that they name. Fulfils `LetterReadings`.

    `gone`: offsets of records with letters that their topics do not keep any more;
    `ending`: of those that end the driver.
    """

    graveyard: Graveyard
    messages: list[Letter] = field(default_factory=list)
    topic_id: str = REPLAYS_ID
    gone: set[int] = field(default_factory=set)
    ending: set[int] = field(default_factory=set)
    end: int = 0
    found: list[int] = field(default_factory=list)
    """The offsets of all records that were read."""

    def ask(self, *offsets: int, sinks: Sequence[str] = BOTH, topic_id: str = "T1") -> None:
        """Add messages for the letters of these records, and one that is of no letter."""
        for offset in offsets:
            asked = letter_replay(offset, sinks, topic_id)
            self.messages.append(Letter(offset=self.end, asked=asked))
            self.end += 1
        self.end += 1

    def replays(self, upto: int | None = None) -> Replays:
        """Return all messages, as a driver reads them; or those below an offset."""
        end = self.end if upto is None else upto
        return Replays(
            topic=REPLAYS,
            topic_id=self.topic_id,
            partition=AT[1],
            letters=[each for each in self.messages if each.offset < end],
            end=end,
        )

    def begin(self, gone: Sequence[TopicPartition] = ()) -> Replays:
        """Return what a driver reads before any letter."""
        return replace(self.replays(0), gone=gone)

    def find(self, letters: Sequence[LetterReplay]) -> list[RawRecord | None]:
        self.found += [each.letter.source for each in letters]
        return [
            None if each.letter.source in self.gone else record_of(each.letter.source)
            for each in letters
        ]

    def rows(self, records: Sequence[RawRecord]) -> BatchRows:
        offsets = [each.offset for each in records]
        assert not self.ending.intersection(offsets), "the driver ends"
        if self.graveyard.failing.intersection(offsets):
            raise QueryFailed("division by zero", "ArithmeticException")
        malformed = self.graveyard.malformed
        rows = pa.table({"n": pa.array([o for o in offsets if o not in malformed], pa.int64())})
        dead = [
            RejectedRecord(
                topic=each.topic, partition=each.partition, offset=each.offset, verdict=0
            )
            for each in records
            if each.offset in malformed
        ]
        return BatchRows({"first": rows, "second": rows}, dead=dead)

    def plan_records(self, records: Sequence[RawRecord]) -> GravePlan | None:
        return None

    def die(self, record: RawRecord, verdict: int) -> DeadLetterRecord:
        cause = DeadCause(reason=DeadReason.MALFORMED, message="no number")
        return DeadLetterRecord(record=record, cause=cause)


def letter_replay(offset: int, sinks: Sequence[str], topic_id: str = "T1") -> LetterReplay:
    return LetterReplay(
        tenant="t",
        pipeline_uid="u",
        at=0,
        stage="load@1",
        sinks=tuple(sinks),
        letter=LetterId(topic=f"{TOPIC}.dlq", partition=0, offset=offset, source=offset),
        letter_topic_id="D1",
        topic=TOPIC,
        topic_id=topic_id,
        partition=0,
        size=10,
    )


def record_of(offset: int) -> RawRecord:
    value = str(offset).encode()
    return RawRecord(topic=TOPIC, partition=0, offset=offset, key=b"k", value=value)


def replayed(fence: Fence) -> int:
    return fence.replayed.get(AT, 0)


def again(sink: ListSink, offsets: Iterable[int]) -> list[int]:
    """Return how often the sink has each of these rows."""
    return [sink.numbers.count(offset) for offset in offsets]
