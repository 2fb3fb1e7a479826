"""Records of letters that a stage processes again. Fulfils
`waybill_spark.tracking.replaying.LetterReadings`.

The records are read by a plain client from their dead-letter topics, and given to the plan of the
stage as raw records at the places where they died.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Final

import pyarrow as pa
from confluent_kafka import Message
from pyspark.sql import DataFrame, SparkSession

from waybill_shared.contract import dead_letters as named
from waybill_shared.contract.dead_letters import LetterId, split_headers
from waybill_shared.contract.replays import LetterReplay
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.clients import read_ranges
from waybill_spark.driver.reading.source import columns
from waybill_spark.driver.reading.topics import raw_record
from waybill_spark.driver.sql.compile import CompiledStage
from waybill_spark.kafka.topic_ids import sure_ids
from waybill_spark.tracking.batch_rows import BatchRows
from waybill_spark.tracking.dead_letters.records import DeadLetterRecord, RawRecord
from waybill_spark.tracking.ports import PlannedRecords

logger = logging.getLogger(__name__)

SCHEMA: Final = pa.schema([
    ("topic", pa.string()),
    ("partition", pa.int32()),
    ("offset", pa.int64()),
    ("value", pa.binary()),
    ("key", pa.binary()),
    ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
    ("timestamp", pa.timestamp("us", tz="UTC")),
])  # fmt: skip
"""As Spark's source of Kafka has them."""
MICROSECONDS: Final = 1_000  # in a millisecond
AS_ROWS: Final = {"spark.sql.execution.arrow.localRelationThreshold": "0"}
"""Spark would compute a small frame while it plans it, and what is observed there is lost."""


class SparkLetters:
    def __init__(
        self, admin: KafkaAdmin, spark: SparkSession, compiled: CompiledStage, *, absent_s: float
    ) -> None:
        self._admin = admin
        self._compiled = compiled
        self._absent_s = absent_s
        # Of its own: views of several stages have the same names.
        self._spark = spark.newSession()
        for name, value in AS_ROWS.items():
            self._spark.conf.set(name, value)

    def find(self, letters: Sequence[LetterReplay]) -> list[RawRecord | None]:
        ids = {each.letter.topic: each.letter_topic_id for each in letters}
        there = sure_ids(self._admin, ids, absent_s=self._absent_s)
        known = [e for e in letters if there.get(e.letter.topic) == e.letter_topic_id]
        found = dict(self._read([each.letter for each in known]))
        return [
            _as_it_was(each, found[each.letter]) if each.letter in found else None
            for each in letters
        ]

    def rows(self, records: Sequence[RawRecord]) -> BatchRows:
        return self._compiled.rows(self._frame(records))

    def plan_records(self, records: Sequence[RawRecord]) -> PlannedRecords | None:
        return self._compiled.plan_records(
            self._frame(records), [record.place for record in records]
        )

    def die(self, record: RawRecord, verdict: int) -> DeadLetterRecord:
        return self._compiled.dead(record, verdict)

    def _frame(self, records: Sequence[RawRecord]) -> DataFrame:
        table = pa.Table.from_pylist([_as_row(each) for each in records], SCHEMA)
        return self._spark.createDataFrame(table).select(*columns(self._compiled.whole))

    def _read(self, letters: Sequence[LetterId]) -> Iterator[tuple[LetterId, Message]]:
        """Yield those that are there. All between the first and the last of a partition is read."""
        for topic in {each.topic for each in letters}:
            mine = {(e.partition, e.offset): e for e in letters if e.topic == topic}
            with closing(
                read_ranges(self._admin.cluster, topic, self._ranges(topic, [*mine]))
            ) as messages:
                for message in messages:
                    letter = mine.get((message.partition() or 0, message.offset() or 0))
                    if letter is not None and _is_of(message, letter):
                        yield letter, message

    def _ranges(
        self, topic: str, places: Sequence[tuple[int, int]]
    ) -> Mapping[int, tuple[int, int]]:
        """Return what to read of each partition, as far as it is there."""
        ends: dict[int, tuple[int, int]] = {}
        for partition, offset in places:
            start, end = ends.get(partition, (offset, offset + 1))
            ends[partition] = (min(start, offset), max(end, offset + 1))
        firsts, lasts = self._admin.starts(topic, ends), self._admin.stable_ends(topic, ends)
        return {p: (max(start, firsts[p]), min(end, lasts[p])) for p, (start, end) in ends.items()}


def _is_of(message: Message, letter: LetterId) -> bool:
    headers = split_headers(raw_record("", message).headers)
    return headers is not None and headers.facts[named.OFFSET] == str(letter.source)


def _as_it_was(asked: LetterReplay, message: Message) -> RawRecord:
    letter = raw_record(asked.letter.topic, message)
    headers = split_headers(letter.headers)
    assert headers is not None, "others are no letters"
    content = asked.edited or letter
    return RawRecord(
        topic=asked.topic,
        partition=asked.partition,
        offset=asked.letter.source,
        key=content.key,
        value=content.value,
        headers=headers.own,
        timestamp=message.timestamp()[1],
    )


def _as_row(record: RawRecord) -> dict[str, object]:
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "value": record.value,
        "key": record.key,
        "headers": [{"key": name, "value": value} for name, value in record.headers] or None,
        "timestamp": None if record.timestamp is None else record.timestamp * MICROSECONDS,
    }
