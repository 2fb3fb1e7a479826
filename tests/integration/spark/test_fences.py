"""Reading the newest fence of a Kafka sink, whatever else stands in its partition."""

import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest
from confluent_kafka import Message, Producer

from builders import make_fence
from integration.conftest import Surroundings
from waybill_shared.contract import codec
from waybill_shared.contract.events import Fence
from waybill_shared.kafka.admin import KafkaAdmin, make_admin
from waybill_shared.kafka.clients import make_producer, read_ranges
from waybill_shared.kafka.cluster import Kafka
from waybill_shared.kafka.partitioner import partition_of
from waybill_spark.kafka.fence_topic import reading
from waybill_spark.kafka.fence_topic.reading import Fences
from waybill_spark.sinks.kafka.sink import KafkaSink, KafkaSinkTarget
from waybill_spark.tracking.sink import SinkLife, Written

PARTITIONS = 8
MANY = 100_000


@pytest.fixture(scope="module")
def admin(surroundings: Surroundings) -> KafkaAdmin:
    return make_admin(surroundings.kafka)


@pytest.fixture
def key() -> str:
    return f"default/{uuid.uuid4()}/copy/out"


@pytest.fixture
def sink(surroundings: Surroundings, admin: KafkaAdmin, key: str) -> KafkaSink:
    return claimed(surroundings, admin, key)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[Message]:
    """All that is read of the topic; a look at what an open transaction hides is none."""
    found: list[Message] = []

    def read_counted(
        kafka: Kafka, topic: str, ranges: Mapping[int, tuple[int, int]], *, committed: bool
    ) -> Iterator[Message]:
        for message in read_ranges(kafka, topic, ranges, committed=committed):
            if committed:
                found.append(message)
            yield message

    monkeypatch.setattr(reading, "read_ranges", read_counted)
    return found


def claimed(surroundings: Surroundings, admin: KafkaAdmin, key: str) -> KafkaSink:
    """Its topic is of no concern here: only its fences are written."""
    target = KafkaSinkTarget(
        topic="out",
        topic_id="A",
        absent_s=0.0,
    )
    sink = KafkaSink(
        SinkLife(name="out", since=1, fence_key=key), target, Fences(admin, surroundings.prefix)
    )
    sink.claim()
    return sink


@contextmanager
def transaction_left_open(surroundings: Surroundings, key: str) -> Iterator[Producer]:
    """Of another driver, whose fence stands in the partition of `key`."""
    name = f"{surroundings.prefix}/stranger/{uuid.uuid4()}"
    producer = make_producer(surroundings.kafka, **{"transactional.id": name})
    producer.init_transactions()
    producer.begin_transaction()
    partition = partition_of(key, PARTITIONS)
    topic = f"{surroundings.prefix}.fences"
    producer.produce(topic, key="a/stranger", value=b"its fence", partition=partition)
    producer.flush()
    yield producer
    producer.abort_transaction()


def sequence(written: Written | None) -> int | None:
    return None if written is None else written.fence.batch.sequence


def test_an_open_transaction_of_another_driver_holds_up_no_start(
    surroundings: Surroundings, admin: KafkaAdmin, sink: KafkaSink, key: str
) -> None:
    sink.write(None, make_fence(sequence=4))
    with transaction_left_open(surroundings, key):
        assert sequence(claimed(surroundings, admin, key).last()) == 4
        other = f"default/{uuid.uuid4()}/copy/out"
        assert claimed(surroundings, admin, other).last() is None


def test_a_fence_behind_an_open_transaction_is_waited_for_and_never_missed(
    surroundings: Surroundings, admin: KafkaAdmin, sink: KafkaSink, key: str
) -> None:
    sink.write(None, make_fence(sequence=4))
    found: list[int | None] = []
    with transaction_left_open(surroundings, key):
        sink.write(None, make_fence(sequence=5))
        next_one = claimed(surroundings, admin, key)
        reading = threading.Thread(target=lambda: found.append(sequence(next_one.last())))
        reading.start()
        reading.join(2.0)
        assert found == [], "what it holds is not decided yet"
    reading.join(30.0)
    assert found == [5]


def test_a_fence_of_a_batch_that_was_never_committed_is_none(
    surroundings: Surroundings, admin: KafkaAdmin, sink: KafkaSink, key: str
) -> None:
    sink.write(None, make_fence(sequence=4))
    topic = f"{surroundings.prefix}.fences"
    killed = sink._transactions._producer
    assert killed is not None
    killed.begin()
    killed.client.produce(topic, key=key, value=codec.encode(make_fence(sequence=5)))
    killed.client.flush()

    assert sequence(claimed(surroundings, admin, key).last()) == 4


def test_of_a_long_history_little_is_read_and_one_fence_decoded(
    surroundings: Surroundings,
    admin: KafkaAdmin,
    sink: KafkaSink,
    key: str,
    monkeypatch: pytest.MonkeyPatch,
    read: list[Message],
) -> None:
    topic = f"{surroundings.prefix}.fences"
    write_many(surroundings, topic, key)
    sink.write(None, make_fence(sequence=7))
    read.clear()
    decoded: list[object] = []
    decode = codec.decode

    def decode_counted(kind: type[Fence], raw: bytes) -> Fence:
        decoded.append(kind)
        return decode(kind, raw)

    monkeypatch.setattr(codec, "decode", decode_counted)

    assert sequence(sink.last()) == 7
    assert len(decoded) == 1
    assert len(read) <= reading.FIRST_STEP


def test_the_sinks_of_a_driver_read_a_partition_once_and_then_what_is_new(
    surroundings: Surroundings, admin: KafkaAdmin, read: list[Message]
) -> None:
    keys = [f"default/{uuid.uuid4()}/copy/out" for _ in range(60)]
    partition = partition_of(keys[0], PARTITIONS)
    one, other, *_ = (key for key in keys if partition_of(key, PARTITIONS) == partition)
    written = {key: claimed(surroundings, admin, key) for key in (one, other)}
    for sink in written.values():
        sink.write(None, make_fence(sequence=4))
    read.clear()
    fences = Fences(admin, surroundings.prefix)
    fences.expect(other)
    assert in_fence(fences.newest(one)) == 4
    assert len(read) >= 2
    read.clear()
    written[other].write(None, make_fence(sequence=5))
    assert in_fence(fences.newest(other)) == 5
    assert in_fence(fences.newest(one)) == 4
    assert [message.key() for message in read] == [other.encode()]


def in_fence(value: bytes | None) -> int | None:
    return None if value is None else codec.decode(Fence, value).batch.sequence


def write_many(surroundings: Surroundings, topic: str, key: str) -> None:
    value = codec.encode(make_fence(sequence=1))
    producer = make_producer(surroundings.kafka, **{"linger.ms": 20})
    for number in range(MANY):
        producer.produce(topic, key=key, value=value)
        if number % 10_000 == 0:
            producer.flush()
    producer.flush()
