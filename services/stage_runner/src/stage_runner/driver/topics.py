"""The topics of a stage, for everything but its query. Fulfils `waybill.spark.stage.Source`."""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from shared.events import Range
from shared.kafka_admin import KafkaAdmin
from shared.kafka_cluster import Kafka
from stage_runner.driver.source import read_ranges
from waybill.spark.stage import Rows

ABSENT_S: Final = 5.0  # a broker that has just started may not know every topic yet
ABSENT_POLL_S: Final = 0.5


class TopicSource:
    def __init__(
        self,
        admin: KafkaAdmin,
        spark: SparkSession,
        kafka: Kafka,
        to_rows: Callable[[DataFrame], Rows],
    ) -> None:
        self._admin = admin
        self._to_rows = to_rows
        self._spark = spark
        self._kafka = kafka

    def ids(self, topics: Iterable[str]) -> Mapping[str, str]:
        """Absent is only what stays absent for a while: it is a reason to call data lost."""
        wanted = set(topics)
        deadline = time.monotonic() + ABSENT_S
        while True:
            found = self._admin.identify(wanted)
            if found.keys() == wanted or time.monotonic() > deadline:
                return {name: identity.topic_id for name, identity in found.items()}
            time.sleep(ABSENT_POLL_S)

    def starts(self, topic: str) -> Mapping[int, int]:
        identity = self._admin.identify([topic]).get(topic)
        return {} if identity is None else self._admin.starts(topic, identity.partitions)

    def read(self, ranges: tuple[Range, ...]) -> Rows:
        return self._to_rows(read_ranges(self._spark, self._kafka, ranges))
