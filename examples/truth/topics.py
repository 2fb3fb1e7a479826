"""What producers, operators and retention do to a topic, behind the back of whoever reads it."""

import json
from collections.abc import Iterable
from typing import Final

from confluent_kafka import KafkaError, Message, TopicPartition
from confluent_kafka.admin import NewTopic

from examples.truth.waiting import Late, until
from waybill import Span
from waybill_shared.kafka.admin import KafkaAdmin, make_admin
from waybill_shared.kafka.clients import make_producer, position_of, read_to_end

WAIT_S: Final = 60.0


class Topics:
    """Each has one partition."""

    def __init__(self, kafka: str) -> None:
        self._admin: KafkaAdmin = make_admin(kafka)
        self._producer = make_producer(kafka)

    def create(self, topic: str) -> None:
        self._admin.client.create_topics([NewTopic(topic, 1, 1)])[topic].result()
        until(lambda: self._admin.identify([topic]), f"topic {topic}", within_s=WAIT_S)

    def create_again(self, topic: str) -> None:
        """Delete it and make a new one of that name."""
        self._admin.client.delete_topics([topic])[topic].result()
        until(lambda: not self._admin.identify([topic]), f"no topic {topic}", within_s=WAIT_S)
        self.create(topic)

    def remove_records(self, topic: str, before: int) -> None:
        """As retention does it: the first record that is left is the one at `before`."""
        place = TopicPartition(topic, 0, before)
        self._admin.client.delete_records([place])[place].result()
        until(
            lambda: self._admin.starts(topic, [0])[0] == before,
            f"no record of {topic} before {before}",
            within_s=WAIT_S,
        )

    def values(self, topic: str) -> list[bytes]:
        """Of all that stands there."""
        found = self._admin.identify([topic])
        partitions = found[topic].partitions if topic in found else ()
        return [m.value() or b"" for m in read_to_end(self._admin.cluster, topic, partitions)]

    def produce(self, topic: str, records: Iterable[bytes]) -> Span:
        """Where they stand, as Kafka has acknowledged it."""
        offsets: list[int] = []

        def acknowledged(error: KafkaError | None, message: Message) -> None:
            if error is None:
                offsets.append(position_of(message)[1])

        wanted = 0
        for record in records:
            self._producer.produce(topic, record, partition=0, on_delivery=acknowledged)
            wanted += 1
        self._producer.flush(WAIT_S)
        if len(offsets) < wanted:
            raise Late(f"topic {topic} acknowledged {len(offsets)} of {wanted} records")
        topic_id = self._admin.identify([topic])[topic].topic_id
        return Span(
            topic=topic, topic_id=topic_id, partition=0, start=min(offsets), end=max(offsets) + 1
        )


def order(number: int) -> bytes:
    record = {"order_id": number, "customer": "ada", "amount": 12.5}
    return json.dumps(record).encode()


def cut_off(number: int) -> bytes:
    """As a producer leaves it whose disk was full."""
    return order(number)[:24]


def size(span: Span) -> int:
    return span.end - span.start
