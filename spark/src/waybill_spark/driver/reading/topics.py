"""The topics of a stage, but for its query. Fulfils `waybill_spark.tracking.ports.Source`."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final

from confluent_kafka import Message
from pyspark.sql import DataFrame, SparkSession

from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.clients import position_of
from waybill_shared.kafka.clients import read_ranges as client_ranges
from waybill_shared.kafka.cluster import Kafka
from waybill_shared.kafka.majority import lowest
from waybill_spark.driver.reading.sizes import FEW, RecordSizes, Sizes, measure, measure_few
from waybill_spark.driver.reading.source import leave_out, read_ranges
from waybill_spark.kafka.topic_ids import sure_ids
from waybill_spark.tracking.batch_rows import BatchRows
from waybill_spark.tracking.dead_letters.records import (
    NOTHING,
    DeadLetterRecord,
    RawRecord,
    RejectedRecord,
    Without,
    positions_of,
)
from waybill_spark.tracking.pieces import Ranges, are_within, in_pieces, in_steps, offsets
from waybill_spark.tracking.ports import PlannedRecords

logger = logging.getLogger(__name__)


TASK_RECORDS_MAX: Final = 250_000  # of a big batch: a driver that reads rows has those of one task
PLANNED_MAX: Final = 1_000  # of the records that a search plans at once


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLimits:
    """The limits of a batch: the most records at once, and what becomes of more."""

    rows_max: int
    bytes_max: int
    distribute: Callable[[DataFrame], BatchRows]
    may_distribute: Callable[[], bool]
    """Returns True if `distribute` can be used; otherwise the batch is cut into pieces."""
    plan_records: Callable[[DataFrame], PlannedRecords | None] = lambda raw: None
    must_stay_whole: bool = False
    """True if each write replaces the one before, so that a batch must not be cut."""


class TopicSource:
    def __init__(
        self,
        admin: KafkaAdmin,
        spark: SparkSession,
        kafka: Kafka,
        to_rows: Callable[[DataFrame], BatchRows],
        to_dead: Callable[[RawRecord, int], DeadLetterRecord],
        *,
        sizes: RecordSizes,
        limits: BatchLimits,
        absent_s: float,
        whole: bool = False,
    ) -> None:
        self._admin = admin
        self._to_rows = to_rows
        self._to_dead = to_dead
        # Of its own: stages read at the same time, and their views have the same names.
        self._spark = spark.newSession()
        self._kafka = kafka
        self._sizes = sizes
        self._limits = limits
        self._absent_s = absent_s
        self._whole = whole
        self._measured: tuple[Ranges, Sizes] = ((), {})

    def ids(self, wanted: Mapping[str, str]) -> Mapping[str, str]:
        return sure_ids(self._admin, wanted, absent_s=self._absent_s)

    def starts(self, topic: str, frontier: Mapping[int, int]) -> Mapping[int, int]:
        identity = self._admin.identify([topic]).get(topic)
        if identity is None:
            return {}
        found = self._admin.starts(topic, identity.partitions)
        if all(start <= frontier.get(partition, 0) for partition, start in found.items()):
            return found
        return lowest(self._admin, lambda client: client.starts(topic, identity.partitions))

    @property
    def must_stay_whole(self) -> bool:
        return self._limits.must_stay_whole

    def has_no_records(self, ranges: Ranges) -> bool:
        for topic in {run.topic for run in ranges}:
            places = {run.partition: (run.start, run.end) for run in ranges if run.topic == topic}
            with closing(client_ranges(self._kafka, topic, places)) as found:
                if next(found, None) is not None:
                    return False
        return True

    def pieces(self, ranges: Ranges) -> tuple[Ranges, ...]:
        """Cut ranges into pieces.

        Nothing is measured if the records cannot be too much; otherwise they are measured first.
        """
        limits = self._limits
        if not self._is_big(ranges) or limits.must_stay_whole or limits.may_distribute():
            return (ranges,)
        pieces: list[Ranges] = []
        for step in in_steps(ranges, limits.rows_max):
            sizes = self._sizes_of(step)
            pieces += (step,) if sizes is None else in_pieces(step, sizes, limits.bytes_max)
        logger.info("batch is read in pieces", extra={"pieces": len(pieces)})
        return tuple(pieces)

    def distributes(self, ranges: Ranges) -> bool:
        """Return True if the rows of these ranges stay with the executors when they are read."""
        return self._is_big(ranges) and self._limits.may_distribute()

    def read(self, ranges: Ranges, without: Without = NOTHING) -> BatchRows:
        big = self.distributes(ranges)
        raw = read_ranges(
            self._spark,
            self._kafka,
            ranges,
            whole=self._whole,
            in_a_task=self._in_a_task(ranges) if big else None,
        )
        to_rows = self._limits.distribute if big else self._to_rows
        return to_rows(leave_out(raw, without))

    def plan_records(self, ranges: Ranges, without: Without) -> PlannedRecords | None:
        if offsets(ranges) > PLANNED_MAX or self._is_big(ranges):
            return None
        raw = read_ranges(self._spark, self._kafka, ranges, whole=self._whole)
        return self._limits.plan_records(leave_out(raw, without))

    def dead(self, rejected: Sequence[RejectedRecord]) -> tuple[DeadLetterRecord, ...]:
        verdicts = {(each.topic, each.partition, each.offset): each.verdict for each in rejected}
        return tuple(
            self._to_dead(record, verdicts[record.topic, record.partition, record.offset])
            for record in self.raw(positions_of(rejected))
        )

    def raw(self, positions: Without) -> tuple[RawRecord, ...]:
        return tuple(
            record
            for topic in sorted({topic for topic, _ in positions})
            for record in self._raw_of(topic, positions)
        )

    def _raw_of(self, topic: str, positions: Without) -> Iterator[RawRecord]:
        """Yield the records at these positions.

        All between the first and the last of a partition are read; few are asked for.
        """
        wanted = {p: offsets for (of, p), offsets in positions.items() if of == topic and offsets}
        places = {p: (min(offsets), max(offsets) + 1) for p, offsets in wanted.items()}
        found = [
            raw_record(topic, message)
            for message in client_ranges(self._kafka, topic, places)
            if message.offset() in wanted[position_of(message)[0]]
        ]
        yield from sorted(found, key=lambda record: (record.partition, record.offset))

    def _is_big(self, ranges: Ranges) -> bool:
        if offsets(ranges) > self._limits.rows_max:
            return True
        sizes = self._sizes_of(ranges)
        return sizes is not None and _bytes_in(sizes) > self._limits.bytes_max

    def _in_a_task(self, ranges: Ranges) -> int:
        """Return how many records one task reads: about as many bytes as a driver reads at once,
        estimated by the first records.
        """
        sizes = measure_few(self._kafka, in_steps(ranges, FEW)[0])
        count, length = sum(map(len, sizes.values())), _bytes_in(sizes)
        enough = count * self._limits.bytes_max // length if length else TASK_RECORDS_MAX
        return min(TASK_RECORDS_MAX, max(1, enough))

    def _sizes_of(self, ranges: Ranges) -> Sizes | None:
        """Return the sizes of the records; None if they surely have fewer bytes than a driver reads
        at once.
        """
        count = offsets(ranges)
        if count * self._sizes.largest <= self._limits.bytes_max:
            return None
        known, sizes = self._measured
        if not are_within(ranges, known):
            sizes = (
                measure_few(self._kafka, ranges)
                if count <= FEW
                else measure(read_ranges(self._spark, self._kafka, ranges))
            )
            self._measured = (ranges, sizes)
            found = [size for records in sizes.values() for _, size in records]
            self._sizes.count(records=len(found), largest=max(found, default=0))
            logger.info("records are measured", extra={"bytes": sum(found)})
        return {
            (run.topic, run.partition): [
                (offset, size)
                for offset, size in sizes.get((run.topic, run.partition), ())
                if run.start <= offset < run.end
            ]
            for run in ranges
        }


def _bytes_in(sizes: Sizes) -> int:
    return sum(size for records in sizes.values() for _, size in records)


def raw_record(topic: str, message: Message) -> RawRecord:
    partition, offset = position_of(message)
    pairs = message.headers() or []
    assert isinstance(pairs, list), "what comes from Kafka has an order"
    headers = tuple((name, _bytes(value)) for name, value in pairs)
    return RawRecord(
        topic=topic,
        partition=partition,
        offset=offset,
        key=_bytes(message.key()),
        value=_bytes(message.value()),
        headers=headers,
    )


def _bytes(value: str | bytes | None) -> bytes | None:
    """Return bytes. This client gives bytes, but its types allow text too."""
    return value.encode() if isinstance(value, str) else value
