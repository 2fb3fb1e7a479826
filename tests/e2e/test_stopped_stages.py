"""A flood of bad records in one input stops one stage: the others go on, through every restart."""

import json
import uuid
from collections.abc import Iterable, Iterator

import pytest
from confluent_kafka import Message
from confluent_kafka.admin import NewTopic
from pyiceberg.catalog.sql import SqlCatalog

from e2e.faults import kill_services
from e2e.reading import committed_orders, rows_of
from e2e.test_dead_letters import producer
from e2e.waiting import drivers_of, eventually, group_of
from postgres import Database
from waybill import Client, Operation, Pipeline, Position
from waybill_local.stack import StackState
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.clients import read_to_end
from waybill_shared.kafka.topics import create_missing

pytestmark = pytest.mark.timeout(600)
WAIT_S = 300.0
INPUTS = ("payments", "refunds", "merchants")
MANIFEST = """
version: 1
name: {name}
inputs:
{inputs}
stages:
{stages}
deadLetter: {{budget: {budget} per 1 hour}}
"""
INPUT = """
  - name: {each}
    kafka: {{topic: {name}.{each}, partitions: 1}}
    schema: "order_id BIGINT, amount INT"
"""
STAGE = """
  - name: {each}
    inputs: [{each}]
    trigger: {{{trigger}}}
    sinks: [{{name: {each}_out, {sink}}}]
"""
OFTEN, ENDS = "processingTime: 100 milliseconds", "availableNow: true"
INTO_KAFKA = "kafka: {{topic: {name}.{each}.out, partitions: 1}}"
REPLACED = "iceberg: {{table: raw.{table}, mode: overwrite}}"
INTO_POSTGRES = "postgres: {{connection: warehouse, table: public.{table}}}"
BAD = 7  # of one batch


class Shop:
    """A pipeline with three inputs, each with a stage and a sink of its own."""

    def __init__(
        self,
        client: Client,
        stack: StackState,
        kafka: KafkaAdmin,
        *,
        refunds: str = INTO_KAFKA,
        trigger: str = OFTEN,
    ) -> None:
        """Apply it. `refunds`: the sink of the refunds."""
        self.client, self.stack, self.kafka = client, stack, kafka
        self._sinks = {**dict.fromkeys(INPUTS, INTO_KAFKA), "refunds": refunds}
        self._trigger = trigger
        name = self.name = f"shop-{uuid.uuid4().hex[:8]}"
        self.table = name.replace("-", "_")
        create_missing(kafka, [NewTopic(f"{name}.{each}", 1, 1) for each in INPUTS])
        self.apply(budget=2)
        self.uid = str(client.pipeline(name).uid)
        self._producer = producer(stack.kafka)

    def apply(self, budget: int) -> None:
        """Apply it, or change how many records may be put aside."""
        names = {"name": self.name, "table": self.table}
        stages = "".join(
            STAGE.format(each=each, sink=sink.format(each=each, **names), trigger=self._trigger)
            for each, sink in self._sinks.items()
        )
        inputs = "".join(INPUT.format(name=self.name, each=each) for each in INPUTS)
        text = MANIFEST.format(name=self.name, inputs=inputs, stages=stages, budget=budget)
        done = self.client.operation(self.client.apply(text).id, wait_s=WAIT_S)
        assert done.state == "done", done.errors

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

    def await_stopped(self, letters: int = 0, phase: str = "Running") -> Pipeline:
        """Wait until the stage is stopped, with so many records put aside."""

        def has_stopped() -> bool:
            now = self.now()
            failed = causes(now) == [("refunds", "stage_failed")]
            return failed and now.phase == phase and len(self.letters()) == letters

        eventually(has_stopped, within_s=WAIT_S)
        return self.now()

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


@pytest.mark.usefixtures("alone")
def test_a_flood_into_a_table_that_is_replaced_waits_for_a_larger_budget(
    client: Client, stack: StackState, kafka: KafkaAdmin, catalog: SqlCatalog
) -> None:
    """Its batch must stay whole: no start makes progress, and the hint says what does."""
    shop = Shop(client, stack, kafka, refunds=REPLACED)
    flood = shop.send("refunds", [*[b"{"] * BAD, order(100)])
    since = shop.await_stopped().conditions[0].since
    shop.start()
    eventually(
        lambda: [each.since != since for each in shop.now().conditions] == [True], within_s=WAIT_S
    )
    (condition,) = shop.await_stopped().conditions
    assert "raise deadLetter.budget" in str(condition.hint)
    shop.assert_goes_on(1)
    shop.apply(budget=BAD)
    assert client.wait(flood[-1], timeout_s=WAIT_S).kind == "complete"
    assert len(shop.letters()) == BAD
    assert shop.now().conditions == ()
    snapshot = catalog.load_table(f"raw.{shop.table}").current_snapshot()
    assert snapshot is not None
    rows = rows_of(catalog, f"raw.{shop.table}", snapshot.snapshot_id)
    assert rows.column("order_id").to_pylist() == [100]
    client.delete(shop.name)


@pytest.mark.usefixtures("alone")
def test_a_run_that_ends_by_itself_reads_all_but_the_stage_that_is_stopped(
    client: Client, stack: StackState, kafka: KafkaAdmin
) -> None:
    shop = Shop(client, stack, kafka, trigger=ENDS)
    client.wait_pipeline(shop.name, "Finished", WAIT_S)
    flood = shop.send("refunds", [*[b"{"] * BAD, order(100)])
    others = [token for each in ("payments", "merchants") for token in shop.send(each, [order(1)])]
    for letters in (2, 4, 6):
        assert shop.start().state == "done"
        shop.await_stopped(letters, phase="Failed")
        assert {client.outcome(each).kind for each in others} == {"complete"}
    assert shop.start().state == "done"
    client.wait_pipeline(shop.name, "Finished", WAIT_S)
    assert {client.outcome(each).kind for each in flood[:-1]} == {"dead_lettered"}
    assert client.outcome(flood[-1]).kind == "complete"
    assert shop.now().conditions == ()
    client.delete(shop.name)
