"""A flood of bad records in one input stops one stage: the others go on, through every restart."""

import json
import uuid
from collections.abc import Iterable, Iterator

import pytest
from confluent_kafka import Message
from confluent_kafka.admin import NewTopic

from e2e.faults import kill_services
from e2e.reading import committed_orders
from e2e.test_dead_letters import producer
from e2e.waiting import drivers_of, eventually, group_of
from postgres import Database
from waybill import Client, Operation, Pipeline, Position
from waybill_local.stack import StackState
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.clients import read_to_end
from waybill_shared.kafka.topics import create_missing

WAIT_S = 120.0
INPUTS = ("payments", "refunds", "merchants")
MANIFEST = """
version: 1
name: {name}
inputs:
{inputs}
stages:
{stages}
deadLetter: {{budget: 2 per 1 hour}}
"""
INPUT = """
  - name: {each}
    kafka: {{topic: {name}.{each}, partitions: 1}}
    schema: "order_id BIGINT, amount INT"
"""
STAGE = """
  - name: {each}
    inputs: [{each}]
    trigger: {{processingTime: 100 milliseconds}}
    sinks: [{{name: {each}_out, {sink}}}]
"""
INTO_KAFKA = "kafka: {{topic: {name}.{each}.out, partitions: 1}}"
INTO_POSTGRES = "postgres: {{connection: warehouse, table: public.{table}}}"
BAD = 7  # of one batch


class Shop:
    """A pipeline with three inputs, each with a stage and a sink of its own."""

    def __init__(
        self, client: Client, stack: StackState, kafka: KafkaAdmin, refunds: str = INTO_KAFKA
    ) -> None:
        """Apply it. `refunds`: the sink of the refunds."""
        self.client, self.stack, self.kafka = client, stack, kafka
        name = self.name = f"shop-{uuid.uuid4().hex[:8]}"
        self.table = name.replace("-", "_")
        sinks = {**dict.fromkeys(INPUTS, INTO_KAFKA), "refunds": refunds}
        create_missing(kafka, [NewTopic(f"{name}.{each}", 1, 1) for each in INPUTS])
        parts = {
            "inputs": "".join(INPUT.format(name=name, each=each) for each in INPUTS),
            "stages": "".join(
                STAGE.format(each=each, sink=sink.format(name=name, each=each, table=self.table))
                for each, sink in sinks.items()
            ),
        }
        done = client.operation(client.apply(MANIFEST.format(name=name, **parts)).id, wait_s=WAIT_S)
        assert done.state == "done", done.errors
        self.uid = str(client.pipeline(name).uid)
        self._producer = producer(stack.kafka)

    def send(self, into: str, values: Iterable[bytes]) -> list[str]:
        """Send them in one transaction, and return a token for each."""
        reports: list[Message] = []
        topic = f"{self.name}.{into}"
        self._producer.begin_transaction()
        for value in values:
            self._producer.produce(topic, value, on_delivery=lambda e, m: reports.append(m))
        self._producer.commit_transaction(WAIT_S)
        topic_id = self.kafka.identify([topic])[topic].topic_id
        return [self._token(topic, topic_id, message) for message in reports]

    def assert_goes_on(self, number: int) -> None:
        """Two of the three process what comes."""
        for each in ("payments", "merchants"):
            (token,) = self.send(each, [order(number)])
            assert self.client.wait(token, timeout_s=WAIT_S).kind == "complete"

    def await_stopped(self, letters: int = 0) -> Pipeline:
        """Wait until the stage is stopped, with so many records put aside."""

        def has_stopped() -> bool:
            failed = causes(self.now()) == [("refunds", "stage_failed")]
            return failed and len(self.letters()) == letters

        eventually(has_stopped, within_s=WAIT_S)
        now = self.now()
        assert now.phase == "Running"
        return now

    def now(self) -> Pipeline:
        return self.client.pipeline(self.name)

    def letters(self) -> list[Message]:
        topic = f"{self.name}.refunds.dlq"
        partitions = self.kafka.identify([topic])[topic].partitions
        return list(read_to_end(self.stack.kafka, topic, partitions))

    def start(self) -> Operation:
        return self.client.operation(
            self.client.start(self.name, stage="refunds").id, wait_s=WAIT_S
        )

    def _token(self, topic: str, topic_id: str, message: Message) -> str:
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        assert offset is not None
        at = Position(topic=topic, topic_id=topic_id, partition=partition, offset=offset)
        return self.client.token_for(self.name, positions=[at]).token


def causes(pipeline: Pipeline) -> list[tuple[str | None, str]]:
    return [(each.stage, each.cause) for each in pipeline.conditions]


def order(number: int) -> bytes:
    return json.dumps({"order_id": number, "amount": 1}).encode()


@pytest.fixture
def shop(client: Client, stack: StackState, kafka: KafkaAdmin) -> Iterator[Shop]:
    made = Shop(client, stack, kafka)
    yield made
    client.delete(made.name)


@pytest.mark.usefixtures("alone")
def test_a_flood_stops_one_stage_until_starts_have_taken_it_in_parts(shop: Shop) -> None:
    shop.assert_goes_on(1)
    flood = shop.send("refunds", [*[b"{"] * BAD, order(100)])
    stopped = shop.await_stopped(letters=2)
    (condition,) = stopped.conditions
    assert "dead_letter_budget" in str(condition.message)
    assert "start" in stopped.allowed_actions
    shop.assert_goes_on(2)
    (stage,) = shop.client.outcome(flood[-1]).stages
    assert (stage.stage, stage.blocked_by) == ("refunds", "stage_failed")

    for process in drivers_of(shop.stack, shop.uid):
        process.kill()
    shop.assert_goes_on(3)
    shop.await_stopped(letters=2)
    kill_services(shop.stack, ["stage_runner"])
    shop.assert_goes_on(4)
    shop.await_stopped(letters=2)

    driver = group_of(shop.stack, shop.uid)
    for letters in (4, 6):
        started = shop.start()
        assert started.state == "done", started.errors
        assert any("put 2 records aside" in each for each in started.warnings)
        shop.await_stopped(letters=letters)
        shop.assert_goes_on(letters + 1)
    assert shop.start().state == "done"
    assert shop.client.wait(flood[-1], timeout_s=WAIT_S).kind == "complete"
    assert {shop.client.wait(each, timeout_s=WAIT_S).kind for each in flood[:-1]} == {
        "dead_lettered"
    }
    assert len(shop.letters()) == BAD
    assert shop.now().conditions == ()
    assert group_of(shop.stack, shop.uid) == driver, "no other stage was touched"
    out = committed_orders(shop.stack, shop.kafka, f"{shop.name}.refunds.out")
    assert out == [100]


@pytest.mark.usefixtures("alone")
def test_a_sink_that_takes_nothing_stops_its_stage_alone(
    client: Client, stack: StackState, kafka: KafkaAdmin
) -> None:
    shop = Shop(client, stack, kafka, refunds=INTO_POSTGRES)
    (first,) = shop.send("refunds", [order(1)])
    assert client.wait(first, timeout_s=WAIT_S).kind == "complete"
    database = Database.of(stack)
    database.ask(f"ALTER TABLE public.{shop.table} RENAME TO {shop.table}_dropped")
    (token,) = shop.send("refunds", [order(2)])
    since = shop.await_stopped().conditions[0].since
    driver = group_of(stack, shop.uid)
    shop.assert_goes_on(1)

    shop.start()  # it fails at once, or with its first batch
    eventually(
        lambda: [each.since != since for each in shop.now().conditions] == [True], within_s=WAIT_S
    )
    shop.assert_goes_on(2)
    database.ask(f"ALTER TABLE public.{shop.table}_dropped RENAME TO {shop.table}")
    assert shop.start().state == "done"
    assert client.wait(token, timeout_s=WAIT_S).kind == "complete"
    assert group_of(stack, shop.uid) == driver
    found = database.ask(f"SELECT order_id FROM public.{shop.table} ORDER BY order_id")
    assert [row[0] for row in found] == [1, 2]
    client.delete(shop.name)
