"""The Kafka sink against a real broker: rows and fence in one transaction, one writer at a time."""

import json
import uuid
from collections.abc import Iterable
from dataclasses import replace

import pyarrow as pa
import pytest
from confluent_kafka.admin import NewTopic

from builders import make_fence
from contracts.sink import SinkContract
from integration.conftest import Surroundings
from integration.waiting import eventually
from waybill_shared.contract.events import Fence, Gap
from waybill_shared.kafka.admin import KafkaAdmin, make_admin
from waybill_shared.kafka.clients import make_producer, read_to_end
from waybill_shared.kafka.topics import create_missing
from waybill_spark.sinks.contract import Sink, SinkLife
from waybill_spark.sinks.kafka.sink import KEY, VALUE, KafkaSink, KafkaSinkTarget
from waybill_spark.stopping import StageStopped
from waybill_spark.topic_ids import OTHER_ID_S

PARTITIONS = 2


@pytest.fixture(scope="module")
def admin(surroundings: Surroundings) -> KafkaAdmin:
    return make_admin(surroundings.kafka)


@pytest.fixture
def target(surroundings: Surroundings, admin: KafkaAdmin) -> KafkaSinkTarget:
    topic = f"out-{uuid.uuid4().hex[:8]}"
    create_missing(admin, [NewTopic(topic, PARTITIONS, 1)])
    eventually(lambda: _topic_id(admin, topic))
    return KafkaSinkTarget(
        kafka=surroundings.kafka,
        topic_prefix=surroundings.prefix,
        topic=topic,
        topic_id=_topic_id(admin, topic),
        absent_s=OTHER_ID_S,
    )


def _topic_id(admin: KafkaAdmin, topic: str) -> str:
    found = admin.identify([topic]).get(topic)
    return found.topic_id if found is not None and len(found.partitions) == PARTITIONS else ""


def after(fence: Fence) -> Fence:
    """The next fence, as a stage makes it before the sink writes."""
    return make_fence(sequence=fence.sequence + 1, outputs=fence.outputs)


def life_in(target: KafkaSinkTarget) -> SinkLife:
    return SinkLife(name="out", since=1, fence_key=f"default/{target.topic}/copy/out@1")


def opened(target: KafkaSinkTarget, admin: KafkaAdmin) -> KafkaSink:
    sink = KafkaSink(life_in(target), target, admin)
    sink.claim()
    return sink


def rows(*numbers: int) -> Iterable[pa.RecordBatch]:
    values = [json.dumps({"order_id": number}) for number in numbers]
    batches: list[pa.RecordBatch] = pa.table(
        {KEY: [str(number) for number in numbers], VALUE: values}
    ).to_batches()
    return batches


def committed(target: KafkaSinkTarget) -> list[int]:
    found = read_to_end(target.kafka, target.topic, range(PARTITIONS))
    return sorted(json.loads(message.value() or b"")["order_id"] for message in found)


class TopicPlace:
    def __init__(self, target: KafkaSinkTarget, admin: KafkaAdmin) -> None:
        self._target = target
        self._admin = admin

    def sink(self, since: int = 1) -> Sink:
        key = f"default/{self._target.topic}/copy/out@{since}"
        life = SinkLife(name="out", since=since, fence_key=key)
        return KafkaSink(life, self._target, self._admin)

    def rows(self, *numbers: int) -> Iterable[pa.RecordBatch]:
        return rows(*numbers)

    def read(self) -> list[int]:
        return committed(self._target)


class TestKafkaSink(SinkContract):
    @pytest.fixture
    def place(self, target: KafkaSinkTarget, admin: KafkaAdmin) -> TopicPlace:
        return TopicPlace(target, admin)


def test_the_fence_holds_where_the_rows_stand(target: KafkaSinkTarget, admin: KafkaAdmin) -> None:
    sink = opened(target, admin)

    written = sink.write(rows(*range(10)), make_fence(sequence=0))
    sink.await_visible(written.fence)

    ends = admin.stable_ends(target.topic, range(PARTITIONS))
    assert committed(target) == list(range(10))
    assert all(output.end <= ends[output.partition] for output in written.fence.outputs)
    assert sum(o.end - o.first for o in written.fence.outputs) == 10


def test_every_record_says_which_batch_it_came_with(
    target: KafkaSinkTarget, admin: KafkaAdmin
) -> None:
    fence = make_fence(sequence=0)
    sink = opened(target, admin)
    sink.await_visible(sink.write(rows(*range(3)), fence).fence)
    found = read_to_end(target.kafka, target.topic, range(PARTITIONS))
    said = [("waybill-batch", f"{fence.lineage}:{fence.batch_id}".encode())]
    assert [message.headers() for message in found] == [said] * 3


def test_outputs_are_cumulative(target: KafkaSinkTarget, admin: KafkaAdmin) -> None:
    sink = opened(target, admin)
    first = sink.write(rows(*range(10)), make_fence(sequence=0)).fence

    second = sink.write(rows(1), after(first)).fence
    third = sink.write(rows(), after(second)).fence

    ends = [{o.partition: o.end for o in fence.outputs} for fence in (first, second, third)]
    assert all(ends[1][partition] >= end for partition, end in ends[0].items())
    assert ends[2] == ends[1]


def test_markers_and_what_others_write_between_batches_are_gaps(
    target: KafkaSinkTarget, admin: KafkaAdmin
) -> None:
    sink = opened(target, admin)
    first = sink.write(rows(1), make_fence(sequence=0)).fence
    second = sink.write(rows(1), after(first)).fence
    (output,) = second.outputs
    assert (output.first, output.end, output.gaps) == (2, 3, (Gap(start=1, end=2),))

    stranger = make_producer(target.kafka)
    stranger.produce(target.topic, value=b'{"order_id": 2}', partition=output.partition)
    assert stranger.flush(10.0) == 0
    (output,) = sink.write(rows(1), after(second)).fence.outputs
    assert (output.first, output.end) == (5, 6)
    assert output.gaps == (Gap(start=1, end=2), Gap(start=3, end=5))


def test_nothing_is_written_into_a_topic_of_another_identity(
    target: KafkaSinkTarget, admin: KafkaAdmin
) -> None:
    sink = KafkaSink(
        life_in(target),
        replace(target, topic_id="AAAAAAAAAAAAAAAAAAAAAA"),
        admin,
    )
    sink.claim()

    with pytest.raises(StageStopped, match="topic_recreated"):
        sink.write(rows(1), make_fence(sequence=0))

    assert committed(target) == []
    assert sink.last() is None
