"""A pipeline that ends in a Kafka topic: complete means that its readers can see it."""

import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from e2e.conftest import order
from e2e.reading import committed_orders
from e2e.topics import recreate
from e2e.waiting import eventually
from waybill import Client
from waybill_local.stack import StackState
from waybill_shared.kafka.admin import KafkaAdmin

START_TIMEOUT_S = 120.0
WAIT_S = 120.0
STILL_S = 3.0  # many times what a batch of this pipeline takes
MANIFEST = """
version: 1
name: {name}
inputs:
  - name: orders
    kafka: {{topic: {name}.in, partitions: 1}}
    schema: "order_id BIGINT, customer STRING, amount DECIMAL(10,2), placed_at TIMESTAMP"
stages:
  - name: copy
    inputs: [orders]
    trigger: {{processingTime: 100 milliseconds}}
    sinks: [{{name: out, kafka: {{topic: {name}.out, key: order_id, partitions: 1}}}}]
"""


@pytest.fixture(scope="module")
def copy(client: Client) -> str:
    name = f"copy-{uuid.uuid4().hex[:8]}"
    operation = client.apply(MANIFEST.format(name=name))
    done = client.operation(operation.id, wait_s=START_TIMEOUT_S)
    assert done.state == "done", done.errors
    return name


@pytest.mark.parametrize("numbers", [range(6), range(6, 20)], ids=["first", "more"])
def test_a_reader_that_starts_after_complete_sees_every_record_once(
    client: Client, stack: StackState, kafka: KafkaAdmin, copy: str, numbers: range
) -> None:
    before = committed_orders(stack, kafka, f"{copy}.out")
    for number in numbers:
        outcome = client.wait(client.send(copy, "orders", [order(number)]), timeout_s=WAIT_S)
        assert outcome.kind == "complete"
        seen = committed_orders(stack, kafka, f"{copy}.out")
        assert seen == [*before, *range(numbers.start, number + 1)]


def test_behind_a_strangers_open_transaction_nothing_is_complete(
    client: Client, stack: StackState, kafka: KafkaAdmin, copy: str
) -> None:
    stranger = Producer({"bootstrap.servers": stack.kafka, "transactional.id": uuid.uuid4().hex})
    stranger.init_transactions(WAIT_S)
    stranger.begin_transaction()
    stranger.produce(f"{copy}.out", value=b"not yours")
    stranger.flush(WAIT_S)

    token = client.send(copy, "orders", [order(100)]).token
    held = list(client_follow(client, token))
    stranger.abort_transaction(WAIT_S)
    outcome = client.wait(token, timeout_s=WAIT_S)

    assert "complete" not in held
    assert outcome.kind == "complete"
    assert committed_orders(stack, kafka, f"{copy}.out")[-1] == 100


def test_what_was_hidden_when_its_topic_was_created_anew_is_lost(
    client: Client, stack: StackState, kafka: KafkaAdmin, copy: str
) -> None:
    """Written behind a stranger's open transaction, so nobody could read it, nor was told of it."""
    topic = f"{copy}.out"
    told = client.send(copy, "orders", [order(200)]).token
    assert client.wait(told, timeout_s=WAIT_S).kind == "complete"
    stranger = Producer({"bootstrap.servers": stack.kafka, "transactional.id": uuid.uuid4().hex})
    stranger.init_transactions(WAIT_S)
    stranger.begin_transaction()
    stranger.produce(topic, value=b"not yours")
    stranger.flush(WAIT_S)
    before = kafka.ends(topic, [0])[0]
    hidden = client.send(copy, "orders", [order(201)]).token
    eventually(lambda: kafka.ends(topic, [0])[0] >= before + 2, within_s=WAIT_S)  # with its marker
    recreate(kafka, topic)

    done = client.operation(client.restart(copy, "earliest").id, wait_s=START_TIMEOUT_S)

    assert done.state == "done", done.errors
    outcome = client.wait(hidden, timeout_s=WAIT_S)
    assert (outcome.kind, [lost.reason for lost in outcome.lost]) == (
        "lost",
        ["sink_topic_recreated"],
    )
    assert client.outcome(told).kind == "complete"
    after = client.send(copy, "orders", [order(202)]).token
    assert client.wait(after, timeout_s=WAIT_S).kind == "complete"
    assert committed_orders(stack, kafka, topic) == [202]


def client_follow(client: Client, token: str) -> Iterator[str]:
    from waybill import StillInProgress

    try:
        for outcome in client.follow(token, timeout_s=STILL_S):
            yield outcome.kind
    except StillInProgress:
        return
