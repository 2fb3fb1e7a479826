"""Errors of a rebalance's callbacks reach the code that polls, each as itself."""

import uuid
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition

from integration.conftest import Surroundings
from integration.waiting import eventually
from waybill_shared.kafka.clients import make_consumer, subscribe

Call = Callable[[Consumer], None]


def ask_too_many(consumer: Consumer) -> None:
    consumer.consume(1_000_001)


def ask_too_fast(consumer: Consumer) -> None:
    consumer.committed([TopicPartition("any", 0)], timeout=0)


@pytest.mark.parametrize(
    ("call", "expected"),
    [(ask_too_many, "ValueError: num_messages"), (ask_too_fast, "KafkaException: ")],
)
def test_an_error_of_the_client_in_a_callback_is_raised_by_poll(
    surroundings: Surroundings, call: Call, expected: str
) -> None:
    consumer = make_consumer(surroundings.kafka, uuid.uuid4().hex)
    topics = [f"{surroundings.prefix}.commands"]
    subscribe(
        consumer,
        topics,
        on_assign=lambda consumer, partitions: call(consumer),
        on_revoke=lambda consumer, partitions: None,
    )
    found: list[str] = []

    def fails() -> bool:
        try:
            consumer.poll(0.1)
        except (ValueError, KafkaException) as error:
            found.append(f"{type(error).__name__}: {error}")
        return bool(found)

    eventually(fails)
    assert expected in found[0]
    consumer.close()
