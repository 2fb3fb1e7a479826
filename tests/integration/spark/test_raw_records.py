"""Records of raw inputs: all of what Kafka has of one."""

from datetime import UTC, datetime

import pyarrow as pa
from pyspark.sql import SparkSession

from waybill_shared.contract.manifest.formats import RAW_COLUMNS, RecordKeys
from waybill_spark.driver.reading.decode import decode
from waybill_spark.driver.reading.inputs import DecodedInput

AT = datetime(2026, 11, 21, 9, tzinfo=UTC)
MANY = [(f"h{number % 50_000}", str(number).encode()) for number in range(100_000)]
RECORDS = [
    (b"k", b"\xff\x00", [("a", b"1"), ("b", None), ("a", b"2"), ("b", b"")]),
    (None, None, None),
    (b"", b"", []),
    (None, b"x", MANY),
]


def test_a_row_is_the_record_with_its_headers(spark: SparkSession) -> None:
    """Of headers with one name the last counts, also among very many."""
    header = pa.struct([("key", pa.string()), ("value", pa.binary())])
    table = pa.table(
        {
            "topic": pa.array(["orders.in"] * 4),
            "partition": pa.array([0] * 4, pa.int32()),
            "offset": pa.array(range(4), pa.int64()),
            "key": pa.array([key for key, _, _ in RECORDS], pa.binary()),
            "value": pa.array([value for _, value, _ in RECORDS], pa.binary()),
            "headers": pa.array(
                [
                    None if few is None else [{"key": k, "value": v} for k, v in few]
                    for _, _, few in RECORDS
                ],
                pa.list_(header),
            ),
            "timestamp": pa.array([AT] * 4, pa.timestamp("us", "UTC")),
        }
    )
    source = DecodedInput(
        name="orders",
        topic="orders.in",
        columns=RAW_COLUMNS,
        own_output=False,
        keys=RecordKeys(format="raw"),
    )
    frame = decode(spark.createDataFrame(table), source)
    declared = [f"{field.name} {field.dataType.simpleString()}" for field in frame.schema]
    assert ", ".join(declared).lower() == RAW_COLUMNS.lower()
    rows = frame.collect()
    assert [(row.key, row.value, dict(row.headers)) for row in rows] == [
        (key, value, dict(few or ())) for key, value, few in RECORDS
    ]
    assert {row.timestamp.astimezone(UTC) for row in rows} == {AT}
