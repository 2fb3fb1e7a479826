"""The topics of a stage, for everything but its query. Fulfils `waybill_spark.stage.Source`."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence

from confluent_kafka import Message
from pyspark.sql import DataFrame, SparkSession

from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.clients import position_of
from waybill_shared.kafka.clients import read_ranges as client_ranges
from waybill_shared.kafka.cluster import Kafka
from waybill_shared.kafka.majority import lowest
from waybill_spark.dead_letters.records import (
    NOTHING,
    BuriedRecord,
    Doomed,
    RawRecord,
    Without,
    positions_of,
)
from waybill_spark.driver.sizes import FEW, RecordSizes, measure, measure_few
from waybill_spark.driver.source import leave_out, read_ranges
from waybill_spark.pieces import Ranges, in_pieces, offsets
from waybill_spark.sinks.rows import BatchRows
from waybill_spark.topic_ids import sure_ids

logger = logging.getLogger(__name__)


class TopicSource:
    def __init__(
        self,
        admin: KafkaAdmin,
        spark: SparkSession,
        kafka: Kafka,
        to_rows: Callable[[DataFrame], BatchRows],
        to_dead: Callable[[RawRecord, int], BuriedRecord],
        *,
        sizes: RecordSizes,
        bytes_max: int,
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
        self._bytes_max = bytes_max
        self._absent_s = absent_s
        self._whole = whole

    def ids(self, wanted: Mapping[str, str]) -> Mapping[str, str]:
        return sure_ids(self._admin, wanted, absent_s=self._absent_s)

    def starts(self, topic: str, held: Mapping[int, int]) -> Mapping[int, int]:
        identity = self._admin.identify([topic]).get(topic)
        if identity is None:
            return {}
        found = self._admin.starts(topic, identity.partitions)
        if all(start <= held.get(partition, 0) for partition, start in found.items()):
            return found
        return lowest(self._admin, lambda client: client.starts(topic, identity.partitions))

    def pieces(self, ranges: Ranges) -> tuple[Ranges, ...]:
        """Costs nothing where the records cannot be too much; else they are measured first."""
        count = offsets(ranges)
        if count * self._sizes.largest <= self._bytes_max:
            return (ranges,)
        sizes = (
            measure_few(self._kafka, ranges)
            if count <= FEW
            else measure(read_ranges(self._spark, self._kafka, ranges))
        )
        found = [size for records in sizes.values() for _, size in records]
        self._sizes.met(records=len(found), largest=max(found, default=0))
        pieces = in_pieces(ranges, sizes, self._bytes_max)
        logger.info("records are measured", extra={"bytes": sum(found), "pieces": len(pieces)})
        return pieces

    def read(self, ranges: Ranges, without: Without = NOTHING) -> BatchRows:
        raw = read_ranges(self._spark, self._kafka, ranges, whole=self._whole)
        return self._to_rows(leave_out(raw, without))

    def dead(self, doomed: Sequence[Doomed]) -> tuple[BuriedRecord, ...]:
        verdicts = {(each.topic, each.partition, each.offset): each.verdict for each in doomed}
        return tuple(
            self._to_dead(record, verdicts[record.topic, record.partition, record.offset])
            for record in self.raw(positions_of(doomed))
        )

    def raw(self, positions: Without) -> tuple[RawRecord, ...]:
        return tuple(
            record
            for topic in sorted({topic for topic, _ in positions})
            for record in self._raw_of(topic, positions)
        )

    def _raw_of(self, topic: str, positions: Without) -> Iterator[RawRecord]:
        """All between the first and the last of a partition are read; few are asked for."""
        wanted = {p: offsets for (of, p), offsets in positions.items() if of == topic and offsets}
        places = {p: (min(offsets), max(offsets) + 1) for p, offsets in wanted.items()}
        found = [
            raw_record(topic, message)
            for message in client_ranges(self._kafka, topic, places)
            if message.offset() in wanted[position_of(message)[0]]
        ]
        yield from sorted(found, key=lambda record: (record.partition, record.offset))


def raw_record(topic: str, message: Message) -> RawRecord:
    partition, offset = position_of(message)
    told = message.headers() or []
    assert isinstance(told, list), "what comes from Kafka has an order"
    headers = tuple((name, _bytes(value)) for name, value in told)
    return RawRecord(
        topic=topic,
        partition=partition,
        offset=offset,
        key=_bytes(message.key()),
        value=_bytes(message.value()),
        headers=headers,
    )


def _bytes(value: str | bytes | None) -> bytes | None:
    """This client gives bytes, but its types allow for text too."""
    return value.encode() if isinstance(value, str) else value
