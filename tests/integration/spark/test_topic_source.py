"""The topics of a stage, read again: what is left out, what is dead, and records as they stand."""

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import NewTopic
from pyspark.sql import SparkSession

from batch_reading import tables_of
from containers import Servers
from integration.spark.conftest import RawFrame
from integration.waiting import eventually
from waybill_shared.contract.events import Range
from waybill_shared.contract.manifest.reading import read_manifest
from waybill_shared.contract.words import DeadReason
from waybill_shared.kafka.admin import KafkaAdmin, make_admin
from waybill_shared.kafka.clients import claim_transactions, make_producer
from waybill_shared.kafka.topics import create_missing
from waybill_spark.driver.reading.source import leave_out
from waybill_spark.driver.reading.topics import BatchLimits, TopicSource
from waybill_spark.driver.sql.compile import compile_pipeline
from waybill_spark.guard.allowed import read_allowed
from waybill_spark.tracking.batch_rows import BatchRows
from waybill_spark.tracking.dead_letters.records import (
    NOTHING,
    RawRecord,
    RejectedRecord,
    positions_of,
)
from waybill_spark.tracking.pieces import Ranges

TIMEOUT_S = 10.0
MANIFEST = """
version: 1
name: orders
inputs:
  - name: orders
    kafka: {topic: %(orders)s}
    schema: "order_id BIGINT, key STRING"
    expectations:
      - {name: few, expect: order_id < 100, onViolation: drop}
      - {name: positive, expect: order_id > 0}
  - name: people
    kafka: {topic: %(people)s}
    schema: "order_id BIGINT"
    onMalformed: drop
    expectations: [{name: even, expect: order_id %% 2 = 0}]
  - name: unread
    kafka: {topic: %(unread)s}
    schema: "order_id BIGINT"
stages:
  - name: unite
    inputs: [orders, people, unread]
    steps:
      - name: united
        sql: SELECT order_id FROM orders UNION ALL SELECT order_id FROM people
    sinks: [{name: lake, iceberg: {table: raw.orders}}]
"""
HEADERS: list[tuple[str, str | bytes | None]] = [
    ("trace", b"\x00\xff"),
    ("again", b"1"),
    ("nothing", None),
    ("again", b"2"),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Topics whose records are known by their offsets."""

    admin: KafkaAdmin
    source: TopicSource
    orders: str
    people: str
    unread: str

    @property
    def ranges(self) -> Ranges:
        ends = {(self.orders, 0): 8, (self.orders, 1): 2, (self.people, 0): 3, (self.unread, 0): 1}
        return tuple(
            Range(topic=topic, topic_id="T", partition=partition, start=0, end=end)
            for (topic, partition), end in ends.items()
        )


@pytest.fixture(scope="module", params=["here", "spread"])
def bench(spark: SparkSession, servers: Servers, request: pytest.FixtureRequest) -> Bench:
    suffix = uuid.uuid4().hex[:8]
    names = {name: f"{name}.{suffix}" for name in ("orders", "people", "unread")}
    admin = make_admin(servers.kafka)
    create_missing(admin, [NewTopic(name, 2, 1) for name in names.values()])
    eventually(lambda: len(admin.identify(names.values())) == len(names))
    fill(servers.kafka, names)
    eventually(lambda: admin.stable_ends(names["orders"], (0, 1)) == {0: 9, 1: 3})
    (compiled,) = compile_pipeline(spark, read_manifest(MANIFEST % names).model, read_allowed())
    source = TopicSource(
        admin,
        spark,
        servers.kafka,
        compiled.rows,
        compiled.dead,
        sizes=compiled.sizes,
        limits=BatchLimits(
            rows_max=1 if request.param == "spread" else 1_000,
            bytes_max=1 << 20,
            distribute=compiled.distribute,
            may_distribute=lambda: True,
        ),
        absent_s=0.0,
    )
    return Bench(admin=admin, source=source, **names)


@pytest.fixture(scope="module")
def rows(bench: Bench) -> BatchRows:
    return bench.source.read(bench.ranges)


def fill(kafka: str, names: dict[str, str]) -> None:
    """Positions are those of the comments; what was taken back has 5, and its marker 6."""
    producer = make_producer(kafka, **{"transactional.id": names["orders"]})
    claim_transactions(producer, TIMEOUT_S)
    producer.begin_transaction()
    orders = names["orders"]
    producer.produce(orders, b'{"order_id": 1}', b"k", partition=0)  # 0: good
    producer.produce(orders, b'{"order_id": "\xff', b"\x00key", partition=0, headers=HEADERS)  # 1
    producer.produce(orders, None, partition=0)  # 2: malformed
    producer.produce(orders, b'{"order_id": -3}', partition=0, headers=[])  # 3: breaks `positive`
    producer.produce(orders, b'{"order_id": "x"}', b"", partition=1)  # 0: malformed
    producer.produce(orders, b'{"order_id": 2}', partition=1)  # 1: good
    people = names["people"]
    producer.produce(people, b"{", partition=0)  # 0: malformed, dropped
    producer.produce(people, b'{"order_id": 3}', partition=0, headers=HEADERS[:1])  # 1: `even`
    producer.produce(people, b'{"order_id": 4}', partition=0)  # 2: good
    producer.produce(names["unread"], b"{", partition=0)
    producer.commit_transaction(TIMEOUT_S)  # 4 of orders[0]
    take_back(producer, orders)
    producer.begin_transaction()
    producer.produce(orders, b'{"order_id": 700}', partition=0)  # 7: breaks `few`, dropped
    producer.commit_transaction(TIMEOUT_S)


def take_back(producer: Producer, topic: str) -> None:
    producer.begin_transaction()
    producer.produce(topic, b"{", partition=0)
    producer.flush(TIMEOUT_S)  # what is taken back before it was sent leaves no gap
    producer.abort_transaction(TIMEOUT_S)


def places(
    bench: Bench, records: Sequence[RawRecord | RejectedRecord]
) -> list[tuple[str, int, int]]:
    names = {bench.orders: "orders", bench.people: "people"}
    return [(names[each.topic], each.partition, each.offset) for each in records]


def test_what_is_told_as_dead_is_read_in_its_order_as_it_was_written(
    bench: Bench, rows: BatchRows
) -> None:
    assert sorted(tables_of(rows)["lake"].column("order_id").to_pylist()) == [1, 2, 4]
    assert rows.dropped == {"orders.few": 1, "people.malformed": 1}
    dead = bench.source.dead(rows.dead)
    assert places(bench, [each.record for each in dead]) == [
        ("orders", 0, 1),
        ("orders", 0, 2),
        ("orders", 0, 3),
        ("orders", 1, 0),
        ("people", 0, 1),
    ]
    assert [(each.record.key, each.record.value, each.record.headers) for each in dead] == [
        (b"\x00key", b'{"order_id": "\xff', tuple(HEADERS)),
        (None, None, ()),
        (None, b'{"order_id": -3}', ()),
        (b"", b'{"order_id": "x"}', ()),
        (None, b'{"order_id": 3}', tuple(HEADERS[:1])),
    ]


def test_of_each_dead_record_it_is_said_why(bench: Bench, rows: BatchRows) -> None:
    dead = bench.source.dead(rows.dead)
    malformed, violated = DeadReason.MALFORMED, DeadReason.VIOLATED
    assert [(each.cause.reason, each.cause.rule, each.cause.message) for each in dead] == [
        (malformed, None, "byte 15 is not UTF-8"),
        (malformed, None, "it has no value"),
        (violated, "positive", "it breaks rule positive: order_id > 0"),
        (malformed, None, "order_id: BIGINT takes a whole number, this is the string 'x'"),
        (violated, "even", "it breaks rule even: order_id % 2 = 0"),
    ]
    assert {each.cause.error for each in dead} == {"MalformedRecord", "RuleBroken"}
    assert {each.cause.sink for each in dead} == {None}


def test_what_is_left_out_is_not_judged(bench: Bench) -> None:
    without = {
        (bench.orders, 0): frozenset({0, 2, 7}),
        (bench.people, 0): frozenset({0, 1, 2}),
        (bench.people, 1): frozenset({0}),
    }
    rows = bench.source.read(bench.ranges, without)
    assert tables_of(rows)["lake"].column("order_id").to_pylist() == [2]
    assert rows.dropped == {}
    assert places(bench, rows.dead) == [
        ("orders", 0, 1),
        ("orders", 0, 3),
        ("orders", 1, 0),
    ]


def test_records_are_told_as_they_stand_in_their_topics(bench: Bench, rows: BatchRows) -> None:
    """What was taken back was never there, nor is a marker a record."""
    dead = [each.record for each in bench.source.dead(rows.dead)]
    assert list(bench.source.raw(positions_of(dead))) == dead
    some = {(bench.orders, 0): frozenset({1, 4, 5, 6, 7}), (bench.orders, 1): frozenset[int]()}
    assert places(bench, bench.source.raw(some)) == [("orders", 0, 1), ("orders", 0, 7)]
    assert bench.source.raw(NOTHING) == ()


def test_ten_thousand_positions_can_be_left_out(raw_frame: RawFrame) -> None:
    records = [("orders.in", number % 4, number // 4, b"{}") for number in range(20_000)]
    gone = frozenset(range(0, 5_000, 2))
    left = leave_out(raw_frame(records), {("orders.in", partition): gone for partition in range(4)})
    assert left.columns == ["topic", "partition", "offset", "value"]
    found = left.selectExpr("count(*)", "min(offset % 2)").first()
    assert found is not None
    assert tuple(found) == (10_000, 1)


def test_what_retention_has_taken_is_left_out(bench: Bench, rows: BatchRows) -> None:
    """The last test here: the topic is not what it was afterwards."""
    dead = rows.dead
    first = TopicPartition(bench.people, 0, 2)
    for future in bench.admin.client.delete_records([first]).values():
        future.result()
    eventually(lambda: bench.admin.starts(bench.people, (0,)) == {0: 2})
    found = bench.source.raw({(bench.people, 0): frozenset({0, 1, 2})})
    assert [(each.offset, json.loads(each.value or b"")) for each in found] == [
        (2, {"order_id": 4})
    ]
    assert bench.source.raw({(bench.people, 0): frozenset({1})}) == ()
    assert len(bench.source.dead(dead)) == len(dead) - 1
