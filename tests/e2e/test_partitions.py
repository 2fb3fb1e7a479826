"""Topics of a running pipeline get more partitions while records come in."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Message
from confluent_kafka.admin import NewPartitions
from pyiceberg.catalog.sql import SqlCatalog

from e2e.line import WAIT_S, Line
from waybill import Client
from waybill_local.stack import StackState
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.clients import make_producer, position_of

BEFORE, AFTER = 2, 5
ROUNDS = 10
PAUSE_S = 0.05  # some hundred requests while a driver restarts are enough


@pytest.fixture(scope="module")
def line(client: Client, stack: StackState, kafka: KafkaAdmin, catalog: SqlCatalog) -> Line:
    line = Line(client, stack, kafka, catalog)
    line.apply(partitions=BEFORE)
    return line


def test_partitions_that_the_input_gets_under_load_are_read_from_their_first_record(
    client: Client, stack: StackState, kafka: KafkaAdmin, line: Line
) -> None:
    with sending(line, stack.url) as tokens:
        tokens += [straight(line, stack, range(BEFORE)) for _ in range(ROUNDS)]
        grown = client.grow_topic(line.name, "orders", AFTER, yes=True)
        assert (grown.partitions, grown.added) == (AFTER, AFTER - BEFORE)
        tokens += [straight(line, stack, range(AFTER)) for _ in range(ROUNDS)]

    assert {client.wait(token, timeout_s=WAIT_S).kind for token in tokens} == {"complete"}
    line.assert_once(line.token_for_all())


def test_partitions_that_a_topic_between_stages_gets_under_load_are_followed_by_tokens(
    client: Client, stack: StackState, kafka: KafkaAdmin, line: Line
) -> None:
    with sending(line, stack.url) as tokens:
        tokens += [line.send(3) for _ in range(ROUNDS)]
        add_partitions(kafka, f"{line.name}.middle")
        tokens += [line.send(3) for _ in range(ROUNDS)]
        line.restart()  # a producer that runs learns of new partitions minutes later
        tokens += [line.send(3) for _ in range(ROUNDS)]

    assert {client.wait(token, timeout_s=WAIT_S).kind for token in tokens} == {"complete"}
    line.assert_once(line.token_for_all())
    assert all(kafka.ends(f"{line.name}.middle", range(AFTER)).values())


@contextmanager
def sending(line: Line, url: str) -> Iterator[list[str]]:
    """Requests over HTTP, one after the other, the whole time; their tokens."""
    tokens: list[str] = []
    stop = threading.Event()

    def send() -> None:
        with Client(url) as client:
            while not stop.wait(PAUSE_S):
                tokens.append(client.send(line.name, "orders", line.orders(3)).token)

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield tokens
    finally:
        stop.set()
        thread.join()


def straight(line: Line, stack: StackState, partitions: range) -> str:
    """A token for one record in each of the partitions, which the producer names itself."""
    reports: list[Message] = []
    producer = make_producer(stack.kafka)  # a new one, which knows all partitions
    for partition, record in zip(partitions, line.orders(len(partitions)), strict=True):
        producer.produce(
            line.topic,
            json.dumps(record).encode(),
            partition=partition,
            on_delivery=lambda _, report: reports.append(report),
        )
    assert producer.flush(WAIT_S) == 0
    return line.token_for(*map(position_of, reports))


def add_partitions(kafka: KafkaAdmin, topic: str) -> None:
    kafka.client.create_partitions([NewPartitions(topic, AFTER)])[topic].result()
