"""How large the records of a stage are, so that a batch that is surely small is read at once."""

from collections.abc import Mapping
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from waybill_shared.kafka.clients import position_of, read_ranges
from waybill_shared.kafka.cluster import Kafka
from waybill_spark.tracking.pieces import Ranges

Sizes = Mapping[tuple[str, int], list[tuple[int, int]]]
"""Offset and bytes of each record, by topic and partition."""

RECORD_BYTES_GUESS: Final = 1 << 20  # what Kafka takes, unless a topic says otherwise
RECORDS_KNOWN_MIN: Final = 1_000  # fewer than these say nothing about the next ones
FEW: Final = 1_000  # records; of so many a consumer of our own knows the sizes sooner than Spark


class RecordSizes:
    """The sizes of the records that this driver has read in one stage.

    It forgets nothing: a large record may arrive again.
    """

    def __init__(self) -> None:
        self._largest = 0
        self._records = 0

    @property
    def largest(self) -> int:
        """Bytes that the next record hardly exceeds."""
        known = self._records >= RECORDS_KNOWN_MIN
        return self._largest if known else max(self._largest, RECORD_BYTES_GUESS)

    def count(self, *, records: int, largest: int) -> None:
        self._records += records
        self._largest = max(self._largest, largest)


def measure_few(kafka: Kafka, ranges: Ranges) -> Sizes:
    """Measure few records with a consumer of our own.

    Spark needs longer to plan and run a job, most of all the first.
    """
    sizes: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for topic in {run.topic for run in ranges}:
        places = {run.partition: (run.start, run.end) for run in ranges if run.topic == topic}
        for message in read_ranges(kafka, topic, places):
            partition, offset = position_of(message)
            sizes.setdefault((topic, partition), []).append((offset, len(message.value() or b"")))
    return sizes


def measure(raw: DataFrame) -> Sizes:
    """Measure the records in one pass that keeps none of them."""
    size = F.coalesce(F.octet_length("value"), F.lit(0))
    table = raw.select("topic", "partition", "offset", size.alias("bytes")).toArrow()
    sizes: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for topic, partition, offset, length in zip(*(c.to_pylist() for c in table), strict=True):
        sizes.setdefault((topic, partition), []).append((offset, length))
    return sizes
