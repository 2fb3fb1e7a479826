"""The topics of a stage, for everything but its query. Fulfils `waybill_spark.stage.Source`."""

import logging
from collections.abc import Callable, Mapping

from pyspark.sql import DataFrame, SparkSession

from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.cluster import Kafka
from waybill_shared.kafka.majority import lowest
from waybill_spark.driver.sizes import FEW, RecordSizes, measure, measure_few
from waybill_spark.driver.source import read_ranges
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
        *,
        sizes: RecordSizes,
        bytes_max: int,
        absent_s: float,
    ) -> None:
        self._admin = admin
        self._to_rows = to_rows
        # Of its own: stages read at the same time, and their views have the same names.
        self._spark = spark.newSession()
        self._kafka = kafka
        self._sizes = sizes
        self._bytes_max = bytes_max
        self._absent_s = absent_s

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

    def read(self, ranges: Ranges) -> BatchRows:
        return self._to_rows(read_ranges(self._spark, self._kafka, ranges))
