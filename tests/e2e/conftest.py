"""Journeys on the whole stack. Most share one running pipeline, because Spark starts slowly."""

import json
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import jsonschema_rs
import pytest
from confluent_kafka import Message
from playwright.sync_api import Browser, Page
from pyiceberg.catalog.sql import SqlCatalog

from browsing import browsing, visiting
from e2e.command_line import Run, running_in
from e2e.ending import stop_others, wanted_running
from waybill import Client, Position
from waybill_local.services import topic_prefix
from waybill_local.stack import StackState
from waybill_shared.contract.words import EventType
from waybill_shared.http.asyncapi import payload_of
from waybill_shared.kafka.admin import KafkaAdmin, make_admin
from waybill_shared.kafka.clients import make_producer, produce_and_wait, read_to_end

EXAMPLE = Path(__file__).parents[2] / "examples" / "orders.yaml"
START_TIMEOUT_S = 120.0
TRIGGER = "trigger: {processingTime: 100 milliseconds}"
"""Without one an idle stage asks Kafka a hundred times a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """A running pipeline made from the example, under names of its own."""

    name: str
    topic: str
    table: str


@pytest.fixture(scope="session")
def stack(stack: StackState, last_checks: list[Callable[[StackState], None]]) -> StackState:
    """The running local stack; before it goes down, all of its events are checked."""
    last_checks.append(check_events)
    return stack


def check_events(stack: StackState) -> None:
    """Check that each event is as it is described to programs of others."""
    schemas = {kind: jsonschema_rs.validator_for(payload_of(kind)) for kind in EventType}
    kafka = make_admin(stack.kafka)
    for message in read_to_end(kafka.cluster, f"{topic_prefix()}.status", range(8)):
        event = json.loads(message.value() or b"")
        schemas[event["type"]].validate(event)


@pytest.fixture(scope="session")
def client(stack: StackState) -> Iterator[Client]:
    with Client(stack.url) as client:
        yield client


@pytest.fixture
def run(stack: StackState, tmp_path: Path) -> Run:
    """`waybill` in a folder of the user's own."""
    return running_in(tmp_path, stack.url)


Apply = Callable[..., Pipeline]


@pytest.fixture(scope="session")
def apply_orders(client: Client) -> Apply:
    """Applies the example under a fresh name, with replacements; waits until it runs."""

    def apply(*replacements: tuple[str, str], wait: bool = True) -> Pipeline:
        manifest, pipeline = orders_manifest()
        for old, new in replacements:
            assert old in manifest
            manifest = manifest.replace(old, new)
        operation = client.apply(manifest)
        if wait:
            done = client.operation(operation.id, wait_s=START_TIMEOUT_S)
            assert done.state == "done", done.errors
        return pipeline

    return apply


@pytest.fixture(scope="session")
def lasting() -> set[str]:
    """Pipelines that live as long as the stack."""
    return set()


@pytest.fixture(scope="session")
def orders(apply_orders: Apply, lasting: set[str]) -> Pipeline:
    """The example: orders over Kafka, enriched into Kafka, loaded into Iceberg."""
    pipeline = apply_orders()
    lasting.add(pipeline.name)
    return pipeline


@pytest.fixture(scope="module")
def _pipelines_end_with_the_module(client: Client, lasting: set[str]) -> Iterator[None]:
    yield
    stop_others(client, lasting)


@pytest.fixture(autouse=True)
def _pipelines_end_with_the_test(request: pytest.FixtureRequest) -> Iterator[None]:
    """All that a test applied; what fixtures of its module applied was there before it."""
    if "stack" not in request.fixturenames:
        yield
        return
    request.getfixturevalue("_pipelines_end_with_the_module")
    client: Client = request.getfixturevalue("client")
    before = wanted_running(client)
    yield
    stop_others(client, before | request.getfixturevalue("lasting"))


@pytest.fixture
def alone(client: Client, lasting: set[str]) -> None:
    """No pipeline of the module runs: those that the test applies get its driver, and start none.

    Such tests are the last ones of their module.
    """
    stop_others(client, lasting)


@pytest.fixture(scope="session")
def catalog(stack: StackState) -> SqlCatalog:
    folder = stack.folder / "lakehouse"
    folder.mkdir(exist_ok=True)
    return SqlCatalog("lakehouse", uri=f"sqlite:///{folder / 'catalog.db'}")


@pytest.fixture(scope="session")
def kafka(stack: StackState) -> KafkaAdmin:
    return make_admin(stack.kafka)


@pytest.fixture(scope="session")
def produce(stack: StackState, kafka: KafkaAdmin) -> Callable[[str, dict[str, object]], Position]:
    """Sends one record straight to Kafka, as a producer that knows nothing of Waybill."""
    producer = make_producer(stack.kafka)

    def send(topic: str, record: dict[str, object]) -> Position:
        key = str(record.get("order_id", ""))
        report: Message = produce_and_wait(producer, topic, key, json.dumps(record).encode())
        partition, offset = report.partition(), report.offset()
        assert partition is not None
        assert offset is not None
        topic_id = kafka.identify([topic])[topic].topic_id
        return Position(topic=topic, topic_id=topic_id, partition=partition, offset=offset)

    return send


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as found:
        yield found


@pytest.fixture
def page(browser: Browser, stack: StackState) -> Iterator[Page]:
    with visiting(browser, stack.url) as found:
        yield found


def orders_manifest() -> tuple[str, Pipeline]:
    name = f"orders-{uuid.uuid4().hex[:8]}"
    table = f"raw.{name.replace('-', '_')}"
    text = EXAMPLE.read_text()
    for old, new in (
        ("name: orders\ninputs", f"name: {name}\ninputs"),
        ("orders.in", f"{name}.in"),
        ("orders.enriched", f"{name}.enriched"),
        ("raw.orders", table),
        ("inputs: [orders]\n", f"inputs: [orders]\n    {TRIGGER}\n"),
    ):
        assert old in text
        text = text.replace(old, new)
    return text, Pipeline(name=name, topic=f"{name}.in", table=table)


def order(number: int, **fields: object) -> dict[str, object]:
    placed = "2026-11-21T09:00:00Z"
    return {"order_id": number, "customer": "ada", "amount": 12.5, "placed_at": placed, **fields}
