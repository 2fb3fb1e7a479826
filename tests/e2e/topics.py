"""What operators and retention do to topics behind the back of a pipeline."""

import json
from collections.abc import Iterable
from typing import Final

from confluent_kafka import TopicPartition
from confluent_kafka.admin import NewTopic

from e2e.conftest import order
from e2e.waiting import eventually
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.clients import make_producer

WAIT_S: Final = 60.0


def recreate(kafka: KafkaAdmin, topic: str) -> None:
    """Delete it and make a new one of that name, with one partition."""
    kafka.client.delete_topics([topic])[topic].result()
    eventually(lambda: not kafka.identify([topic]), within_s=WAIT_S)
    kafka.client.create_topics([NewTopic(topic, 1, 1)])[topic].result()
    eventually(lambda: bool(kafka.identify([topic])), within_s=WAIT_S)


def produce_orders(bootstrap: str, topic: str, numbers: Iterable[int]) -> None:
    producer = make_producer(bootstrap)
    for number in numbers:
        producer.produce(topic, value=json.dumps(order(number)).encode(), partition=0)
    assert producer.flush(WAIT_S) == 0


def remove_records(kafka: KafkaAdmin, topic: str, before: int) -> None:
    """What retention does: the first record that is left is the one at `before`."""
    place = TopicPartition(topic, 0, before)
    kafka.client.delete_records([place])[place].result()
    eventually(lambda: kafka.starts(topic, [0])[0] == before, within_s=WAIT_S)
