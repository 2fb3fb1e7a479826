"""Records that no stage can process, on the whole stack: they die alone, and tokens say so."""

import json
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import redis
from confluent_kafka import Message, Producer
from confluent_kafka.admin import NewTopic
from pyiceberg.catalog.sql import SqlCatalog

from e2e.faults import kill_services
from e2e.reading import committed_orders
from e2e.waiting import drivers_of, eventually
from postgres import Database
from waybill import Client, Outcome, PipelineFailed, Position
from waybill_local.stack import StackState
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.clients import claim_transactions, make_producer, read_to_end
from waybill_shared.kafka.topics import create_missing
from waybill_shared.process.failpoints import REACHED

WAIT_S = 120.0
LARGE = 4_000_000
MANIFEST = """
version: 1
name: {name}
inputs:
  - name: orders
    kafka: {{topic: {name}.in, partitions: 1}}
    schema: "order_id BIGINT, customer STRING, amount INT"
    expectations: [{{name: positive, expect: "amount >= 0"}}]
stages:
  - name: both
    inputs: [orders]
    trigger: {{processingTime: 100 milliseconds}}
    steps: [{{name: shared, sql: "SELECT *, 100 div amount AS share FROM orders"}}]
    sinks:
      - {{name: kafka, kafka: {{topic: {name}.out, key: order_id, partitions: 1}}}}
      - {{name: iceberg, iceberg: {{table: raw.{table}}}}}
      - {{name: postgres, postgres: {{connection: warehouse, table: public.{table}}}}}
deadLetter: {{budget: {budget} per 1 minute}}
"""
TWO_STAGES = """
version: 1
name: {name}
inputs:
  - name: orders
    kafka: {{topic: {name}.in, partitions: 1}}
    schema: "order_id BIGINT, amount INT"
stages:
  - name: first
    inputs: [orders]
    trigger: {{processingTime: 100 milliseconds}}
    sinks: [{{name: inner, kafka: {{topic: {name}.inner, partitions: 1}}}}]
  - name: second
    inputs: [inner]
    trigger: {{processingTime: 100 milliseconds}}
    steps: [{{name: shared, sql: "SELECT *, 100 div amount AS share FROM inner"}}]
    sinks: [{{name: out, kafka: {{topic: {name}.out, partitions: 1}}}}]
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """One record, where it stands and the token for it."""

    value: bytes
    position: Position
    token: str


class Pipeline:
    """Gets its records straight from a producer, several of them at the same moment."""

    def __init__(
        self, client: Client, stack: StackState, kafka: KafkaAdmin, manifest: str, budget: int = 100
    ) -> None:
        self.client = client
        self.stack = stack
        self.kafka = kafka
        self.name = f"dead-{uuid.uuid4().hex[:8]}"
        self.table = self.name.replace("-", "_")
        self.topic = f"{self.name}.in"
        config = {"max.message.bytes": str(LARGE)}
        create_missing(kafka, [NewTopic(self.topic, 1, 1, config=config)])
        text = manifest.format(name=self.name, table=self.table, budget=budget)
        done = client.operation(client.apply(text).id, wait_s=WAIT_S)
        assert done.state == "done", done.errors
        self.uid = str(client.pipeline(self.name).uid)
        self._producer = producer(stack.kafka)

    def send(self, *values: bytes) -> list[Sent]:
        """In one transaction: a reader gets all of them at the same time."""
        reports: list[Message] = []
        self._producer.begin_transaction()
        for value in values:
            self._producer.produce(
                self.topic, value, key=b"\x00key", on_delivery=lambda e, m: reports.append(m)
            )
        self._producer.commit_transaction(WAIT_S)
        topic_id = self.kafka.identify([self.topic])[self.topic].topic_id
        return [self._sent(value, topic_id, m) for value, m in zip(values, reports, strict=True)]

    def outcomes(self, sent: Iterable[Sent], within_s: float = WAIT_S) -> list[Outcome]:
        return [self.client.wait(each.token, timeout_s=within_s) for each in sent]

    def buried(self) -> list[Message]:
        topic = f"{self.topic}.dlq"
        partitions = self.kafka.identify([topic])[topic].partitions
        return list(read_to_end(self.stack.kafka, topic, partitions))

    def kill_driver(self) -> None:
        for process in drivers_of(self.stack, self.uid):
            process.kill()

    def start(self) -> None:
        done = self.client.operation(self.client.start(self.name).id, wait_s=WAIT_S)
        assert done.state == "done", done.errors

    def _sent(self, value: bytes, topic_id: str, message: Message) -> Sent:
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        assert offset is not None
        position = Position(topic=self.topic, topic_id=topic_id, partition=partition, offset=offset)
        token = self.client.token_for(self.name, positions=[position]).token
        return Sent(value=value, position=position, token=token)


def producer(kafka: str) -> Producer:
    made = make_producer(
        kafka, **{"transactional.id": uuid.uuid4().hex, "message.max.bytes": LARGE}
    )
    claim_transactions(made, WAIT_S)
    return made


def order(number: int, *, amount: int = 5, customer: str = "ada") -> bytes:
    return json.dumps({"order_id": number, "customer": customer, "amount": amount}).encode()


class Sinks:
    """What a reader of each of the three finds."""

    def __init__(self, pipeline: Pipeline, catalog: SqlCatalog) -> None:
        self._pipeline = pipeline
        self._catalog = catalog

    def holding(self, number: int) -> dict[str, int]:
        """How often that order is in each."""
        return {name: numbers.count(number) for name, numbers in self.numbers().items()}

    def numbers(self) -> dict[str, list[int]]:
        of = self._pipeline
        table = self._catalog.load_table(f"raw.{of.table}").scan().to_arrow()
        rows = Database.of(of.stack).ask(f"SELECT order_id FROM public.{of.table}")
        return {
            "kafka": committed_orders(of.stack, of.kafka, f"{of.name}.out"),
            "iceberg": table.column("order_id").to_pylist(),
            "postgres": [row[0] for row in rows],
        }


@pytest.fixture(scope="module")
def pipeline(client: Client, stack: StackState, kafka: KafkaAdmin) -> Iterator[Pipeline]:
    made = Pipeline(client, stack, kafka, MANIFEST)
    Database.of(stack).ask(f"ALTER TABLE public.{made.table} ADD CHECK (amount < 1000)")
    yield made
    client.delete(made.name)


@pytest.fixture
def sinks(pipeline: Pipeline, catalog: SqlCatalog) -> Sinks:
    return Sinks(pipeline, catalog)


TOO_LARGE = order(51, customer="x" * 1_500_000)  # as its source takes it, not the sink's topic
NOWHERE = {"kafka": 0, "iceberg": 0, "postgres": 0}
EVERYWHERE = {"kafka": 1, "iceberg": 1, "postgres": 1}


@pytest.mark.parametrize(
    ("number", "bad", "reason", "lies"),
    [
        pytest.param(11, b'{"order_id": 11, "cust', "malformed", NOWHERE, id="malformed"),
        pytest.param(21, order(21, amount=-1), "violated", NOWHERE, id="violates a rule"),
        pytest.param(31, order(31, amount=0), "failed", NOWHERE, id="fails in the query"),
        pytest.param(
            41, order(41, amount=5000), "refused", {**EVERYWHERE, "postgres": 0}, id="postgres"
        ),
        pytest.param(51, TOO_LARGE, "refused", {**EVERYWHERE, "kafka": 0}, id="too large"),
    ],
)
def test_a_record_dies_alone_and_its_token_says_so(
    pipeline: Pipeline, sinks: Sinks, number: int, bad: bytes, reason: str, lies: dict[str, int]
) -> None:
    sent = pipeline.send(order(number - 1), bad, order(number + 1))
    before, middle, after = pipeline.outcomes(sent)
    assert (before.kind, middle.kind, after.kind) == ("complete", "dead_lettered", "complete")
    (dead,) = middle.dead
    at = sent[1].position
    assert (dead.topic, dead.partition, dead.offset) == (at.topic, at.partition, at.offset)
    assert (dead.reason, dead.exact, middle.dead_count) == (reason, True, 1)
    record = next(
        m for m in pipeline.buried() if dead.dead_letter and m.offset() == dead.dead_letter.offset
    )
    assert (record.key(), record.value()) == (b"\x00key", bad)
    assert sinks.holding(number) == lies
    assert sinks.holding(number - 1) == sinks.holding(number + 1) == EVERYWHERE


EDGES = [
    "!dead.before_commit",
    "both.after_journal",
    "iceberg.after_commit",
    "postgres.after_commit",
    "kafka.after_event",
]


@pytest.mark.parametrize("edge", EDGES)
def test_a_driver_killed_anywhere_buries_once_and_writes_once(
    pipeline: Pipeline, sinks: Sinks, failpoints: Path, edge: str
) -> None:
    number = 1_000 + 10 * EDGES.index(edge)
    pipeline.client.wait_pipeline(pipeline.name, timeout_s=WAIT_S)
    buried = len(pipeline.buried())
    point = failpoints / f"{pipeline.uid}.{edge}"
    point.touch()
    sent = pipeline.send(order(number), b"{", order(number + 2, amount=7000))
    eventually(point.with_name(point.name + REACHED).exists, within_s=WAIT_S)
    pipeline.kill_driver()
    kinds = [outcome.kind for outcome in pipeline.outcomes(sent)]
    assert kinds == ["complete", "dead_lettered", "dead_lettered"]
    assert len(pipeline.buried()) == buried + 2
    assert sinks.holding(number) == EVERYWHERE
    assert sinks.holding(number + 2) == {**EVERYWHERE, "postgres": 0}


def test_what_was_refused_once_is_never_both_dead_and_there(
    pipeline: Pipeline, sinks: Sinks, failpoints: Path, stack: StackState
) -> None:
    """The constraint goes between the two tries of a batch."""
    pipeline.client.wait_pipeline(pipeline.name, timeout_s=WAIT_S)
    after = failpoints / f"{pipeline.uid}.both.after_journal"
    reached = after.with_name(after.name + REACHED)
    reached.unlink(missing_ok=True)  # of a driver that was killed there before
    after.touch()
    (sent,) = pipeline.send(order(2_001, amount=8000))
    eventually(reached.exists, within_s=WAIT_S)
    database, table = Database.of(stack), f"public.{pipeline.table}"
    database.ask(f"ALTER TABLE {table} DROP CONSTRAINT {pipeline.table}_amount_check")
    pipeline.kill_driver()
    try:
        (outcome,) = pipeline.outcomes([sent])
        assert outcome.kind == "dead_lettered"
        assert sinks.holding(2_001) == {**EVERYWHERE, "postgres": 0}
        (alive,) = pipeline.outcomes(pipeline.send(order(2_002, amount=8000)))
        assert alive.kind == "complete"
    finally:
        database.ask(f"DELETE FROM {table} WHERE amount >= 1000")
        database.ask(f"ALTER TABLE {table} ADD CHECK (amount < 1000)")


def test_what_died_is_told_alike_when_redis_and_tracker_have_forgotten_it(
    pipeline: Pipeline, stack: StackState
) -> None:
    sent = pipeline.send(b"{1", order(3_001), b"{2")
    told = [outcome.dead for outcome in pipeline.outcomes(sent)]
    redis.Redis.from_url(stack.redis).flushall()
    kill_services(stack, ["token_tracker"])
    assert [outcome.dead for outcome in pipeline.outcomes(sent)] == told
    assert [len(dead) for dead in told] == [1, 0, 1]


@pytest.mark.usefixtures("alone")
def test_beyond_its_budget_a_stage_stops_before_any_sink_and_a_start_goes_on(
    client: Client, stack: StackState, kafka: KafkaAdmin, catalog: SqlCatalog
) -> None:
    pipeline = Pipeline(client, stack, kafka, MANIFEST, budget=2)
    sinks = Sinks(pipeline, catalog)
    first = pipeline.outcomes(pipeline.send(b"{1", order(1), b"{2"))
    assert [outcome.kind for outcome in first] == ["dead_lettered", "complete", "dead_lettered"]
    sent = pipeline.send(order(2), b"{3", order(3))
    with pytest.raises(PipelineFailed) as failed:
        client.wait_pipeline(pipeline.name, phase="Stopped", timeout_s=WAIT_S)
    error = failed.value.pipeline.error
    assert error is not None
    assert error.message.startswith("dead_letter_budget")
    assert sinks.numbers() == {"kafka": [1], "iceberg": [1], "postgres": [1]}
    assert len(pipeline.buried()) == 2
    pipeline.start()
    kinds = [outcome.kind for outcome in pipeline.outcomes(sent)]
    assert kinds == ["complete", "dead_lettered", "complete"]


@pytest.mark.usefixtures("alone")
def test_behind_a_hop_the_count_is_right_and_others_are_complete(
    client: Client, stack: StackState, kafka: KafkaAdmin
) -> None:
    pipeline = Pipeline(client, stack, kafka, TWO_STAGES)
    before = pipeline.outcomes(pipeline.send(order(1)))
    poison = pipeline.outcomes(pipeline.send(order(2), order(3, amount=0), order(4)))
    after = pipeline.outcomes(pipeline.send(order(5)))
    assert [outcome.kind for outcome in (*before, *after)] == ["complete", "complete"]
    assert {outcome.kind for outcome in poison} == {"dead_lettered"}
    for outcome in poison:
        (dead,) = outcome.dead
        assert (dead.stage, dead.reason, dead.exact, dead.up_to) == ("second", "failed", False, 1)
        assert outcome.dead_count == 1
