"""The topics of a stage, for everything but its query. Fulfils `waybill_spark.stage.Source`."""

import logging
import time
from collections.abc import Callable, Mapping
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from waybill_shared.contract.errors import Retryable
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.cluster import Kafka
from waybill_spark.driver.sizes import RecordSizes, measure
from waybill_spark.driver.source import read_ranges
from waybill_spark.pieces import Ranges, in_pieces, offsets
from waybill_spark.sinks.rows import BatchRows

logger = logging.getLogger(__name__)

ABSENT_POLL_S: Final = 0.5
OTHER_ID_S: Final = 3.0
"""Less than for absence: brokers hear of a new topic within a second or so, and until it is told
nobody may write. No more than `absent_s`."""


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
        """Absent is only what stays absent for a while: it is a reason to call data lost, and a
        broker that has just started, or lost the others, does not know every topic. So is another
        id: a broker that lags tells one that the topic had before, maybe before this pipeline."""
        deadline = time.monotonic() + self._absent_s
        others: dict[str, float] = {}  # when to believe it; by the topics told with another id
        while True:
            found = {n: i.topic_id for n, i in self._admin.identify(wanted).items()}
            now = time.monotonic()
            for topic, topic_id in found.items():
                if topic_id != wanted[topic]:
                    others.setdefault(topic, now + min(self._absent_s, OTHER_ID_S))
                elif topic in others:
                    raise Retryable(f"topic {topic}: brokers do not agree on its id")
            absent = wanted.keys() - found.keys()
            if not (absent and now <= deadline) and all(now >= at for at in others.values()):
                break
            time.sleep(ABSENT_POLL_S)
        for topic in sorted(absent):
            if not self._admin.absent(topic):
                raise Retryable(f"topic {topic}: the controller has it, a broker does not know it")
        return found

    def starts(self, topic: str) -> Mapping[int, int]:
        identity = self._admin.identify([topic]).get(topic)
        return {} if identity is None else self._admin.starts(topic, identity.partitions)

    def pieces(self, ranges: Ranges) -> tuple[Ranges, ...]:
        """Costs nothing where the records cannot be too much; else they are measured first."""
        if offsets(ranges) * self._sizes.largest <= self._bytes_max:
            return (ranges,)
        sizes = measure(read_ranges(self._spark, self._kafka, ranges))
        found = [size for records in sizes.values() for _, size in records]
        self._sizes.met(records=len(found), largest=max(found, default=0))
        pieces = in_pieces(ranges, sizes, self._bytes_max)
        logger.info("records are measured", extra={"bytes": sum(found), "pieces": len(pieces)})
        return pieces

    def read(self, ranges: Ranges) -> BatchRows:
        return self._to_rows(read_ranges(self._spark, self._kafka, ranges))
