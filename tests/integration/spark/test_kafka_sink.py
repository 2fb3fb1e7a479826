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
from shares import Shares
from waybill_shared.contract.events import Fence, Gap
from waybill_shared.kafka.admin import KafkaAdmin, make_admin
from waybill_shared.kafka.clients import make_producer, read_to_end
from waybill_shared.kafka.topics import create_missing
from waybill_spark.kafka.fence_topic.reading import Fences
from waybill_spark.kafka.topic_ids import OTHER_ID_S
from waybill_spark.sinks.kafka.sending import KEY, VALUE
from waybill_spark.sinks.kafka.sink import KafkaSink, KafkaSinkTarget
from waybill_spark.tracking.sink import RowsRefused, Sink, SinkLife, SinkSuperseded
from waybill_spark.tracking.stopping import StageStopped

PARTITIONS = 2


@pytest.fixture(scope="module")
def admin(surroundings: Surroundings) -> KafkaAdmin:
    return make_admin(surroundings.kafka)


@pytest.fixture
def fences(surroundings: Surroundings, admin: KafkaAdmin) -> Fences:
    return Fences(admin, surroundings.prefix)


@pytest.fixture
def target(admin: KafkaAdmin) -> KafkaSinkTarget:
    topic = f"out-{uuid.uuid4().hex[:8]}"
    create_missing(admin, [NewTopic(topic, PARTITIONS, 1)])
    eventually(lambda: _topic_id(admin, topic))
    return KafkaSinkTarget(
        topic=topic,
        topic_id=_topic_id(admin, topic),
        absent_s=OTHER_ID_S,
    )


def _topic_id(admin: KafkaAdmin, topic: str) -> str:
    found = admin.identify([topic]).get(topic)
    return found.topic_id if found is not None and len(found.partitions) == PARTITIONS else ""


def after(fence: Fence) -> Fence:
    """The next fence, as a stage makes it before the sink writes."""
    return make_fence(sequence=fence.batch.sequence + 1, outputs=fence.outputs)


def life_in(target: KafkaSinkTarget) -> SinkLife:
    return SinkLife(name="out", since=1, fence_key=f"default/{target.topic}/copy/out@1")


def opened(target: KafkaSinkTarget, fences: Fences) -> KafkaSink:
    sink = KafkaSink(life_in(target), target, fences)
    sink.claim()
    return sink


def rows(*numbers: int) -> Iterable[pa.RecordBatch]:
    values = [json.dumps({"order_id": number}) for number in numbers]
    batches: list[pa.RecordBatch] = pa.table(
        {KEY: [str(number) for number in numbers], VALUE: values}
    ).to_batches()
    return batches


def committed(target: KafkaSinkTarget, fences: Fences) -> list[int]:
    found = read_to_end(fences.admin.cluster, target.topic, range(PARTITIONS))
    return sorted(json.loads(message.value() or b"")["order_id"] for message in found)


class TopicPlace:
    def __init__(self, target: KafkaSinkTarget, fences: Fences) -> None:
        self._target = target
        self._fences = fences

    def sink(self, since: int = 1) -> Sink:
        key = f"default/{self._target.topic}/copy/out@{since}"
        life = SinkLife(name="out", since=since, fence_key=key)
        return KafkaSink(life, self._target, self._fences)

    def rows(self, *numbers: int) -> Iterable[pa.RecordBatch]:
        return rows(*numbers)

    def read(self) -> list[int]:
        return committed(self._target, self._fences)


class TestKafkaSink(SinkContract):
    @pytest.fixture
    def place(self, target: KafkaSinkTarget, fences: Fences) -> TopicPlace:
        return TopicPlace(target, fences)


def test_the_fence_holds_where_the_rows_stand(target: KafkaSinkTarget, fences: Fences) -> None:
    sink = opened(target, fences)

    written = sink.write(rows(*range(10)), make_fence(sequence=0))
    sink.await_visible(written.fence)

    ends = fences.admin.stable_ends(target.topic, range(PARTITIONS))
    assert committed(target, fences) == list(range(10))
    assert all(output.end <= ends[output.partition] for output in written.fence.outputs)
    assert sum(o.end - o.first for o in written.fence.outputs) == 10


def test_every_record_says_which_batch_it_came_with(
    target: KafkaSinkTarget, fences: Fences
) -> None:
    fence = make_fence(sequence=0)
    sink = opened(target, fences)
    sink.await_visible(sink.write(rows(*range(3)), fence).fence)
    found = read_to_end(fences.admin.cluster, target.topic, range(PARTITIONS))
    said = [("waybill-batch", f"{fence.batch.lineage}:{fence.batch.batch_id}".encode())]
    assert [message.headers() for message in found] == [said] * 3


def test_outputs_are_cumulative(target: KafkaSinkTarget, fences: Fences) -> None:
    sink = opened(target, fences)
    first = sink.write(rows(*range(10)), make_fence(sequence=0)).fence

    second = sink.write(rows(1), after(first)).fence
    third = sink.write(rows(), after(second)).fence

    ends = [{o.partition: o.end for o in fence.outputs} for fence in (first, second, third)]
    assert all(ends[1][partition] >= end for partition, end in ends[0].items())
    assert ends[2] == ends[1]


def test_markers_and_what_others_write_between_batches_are_gaps(
    target: KafkaSinkTarget, fences: Fences
) -> None:
    sink = opened(target, fences)
    first = sink.write(rows(1), make_fence(sequence=0)).fence
    second = sink.write(rows(1), after(first)).fence
    (output,) = second.outputs
    assert (output.first, output.end, output.gaps) == (2, 3, (Gap(start=1, end=2),))

    stranger = make_producer(fences.admin.cluster)
    stranger.produce(target.topic, value=b'{"order_id": 2}', partition=output.partition)
    assert stranger.flush(10.0) == 0
    (output,) = sink.write(rows(1), after(second)).fence.outputs
    assert (output.first, output.end) == (5, 6)
    assert output.gaps == (Gap(start=1, end=2), Gap(start=3, end=5))


def test_nothing_is_written_into_a_topic_of_another_identity(
    target: KafkaSinkTarget, fences: Fences
) -> None:
    sink = KafkaSink(
        life_in(target),
        replace(target, topic_id="AAAAAAAAAAAAAAAAAAAAAA"),
        fences,
    )
    sink.claim()

    with pytest.raises(StageStopped, match="topic_recreated"):
        sink.write(rows(1), make_fence(sequence=0))

    assert committed(target, fences) == []
    assert sink.last() is None


@pytest.mark.parametrize(("before", "behind"), [(1, 1), (1, 0), (0, 0), (0, 3_000)])
def test_records_that_the_topic_takes_only_smaller_are_refused_and_named(
    target: KafkaSinkTarget, fences: Fences, before: int, behind: int
) -> None:
    sink = opened(target, fences)
    small = json.dumps({"order_id": 1, "note": "x" * 10_000})
    values = [*[small] * before, "x" * 1_500_000, *[small] * behind]
    large = pa.table({KEY: ["k"] * len(values), VALUE: values}).to_batches()
    with pytest.raises(RowsRefused, match="larger than the topic takes"):
        sink.write(large, make_fence(sequence=0))
    assert "larger" in (sink.find_refusal(large) or "")
    assert sink.find_refusal(rows(2)) is None
    assert "larger" in (sink.find_refusal(large) or "")
    sink.write(rows(2), make_fence(sequence=0))
    assert committed(target, fences) == [2]


def spread(*numbers: int) -> Shares:
    return Shares(pa.Table.from_batches([*rows(*numbers)]))


def test_executors_write_where_rows_may_be_there_again(
    target: KafkaSinkTarget, fences: Fences
) -> None:
    """Here one of them does it twice; the fence knows where all of it ends."""
    often = replace(target, at_least_once=True)
    sink = opened(often, fences)
    first = sink.write(rows(1), make_fence(sequence=0)).fence
    second = sink.write(spread(2, 3, 4, 5), after(first)).fence

    found = committed(target, fences)
    assert set(found) == {1, 2, 3, 4, 5}
    assert len(found) == 7, "the second half is there twice"
    assert sink.await_visible(second)
    last = opened(often, fences).last()
    assert last is not None
    assert last.fence == second
    assert [output.end for output in second.outputs] != [output.end for output in first.outputs]


def test_without_leave_to_do_so_all_goes_through_the_driver(
    target: KafkaSinkTarget, fences: Fences
) -> None:
    shares = spread(1, 2, 3)
    opened(target, fences).write(shares, make_fence(sequence=0))
    assert sorted(committed(target, fences)) == [1, 2, 3]
    assert shares.asked == 0


def test_a_record_that_an_executor_cannot_write_is_refused(
    target: KafkaSinkTarget, fences: Fences
) -> None:
    sink = opened(replace(target, at_least_once=True), fences)
    huge = pa.table({KEY: ["1", "2"], VALUE: ["x" * 3_000_000, "{}"]})
    with pytest.raises(RowsRefused, match="larger than the topic takes"):
        sink.write(Shares(huge), make_fence(sequence=0))
    assert sink.last() is None


def test_a_paused_driver_moves_no_fence_though_its_executors_wrote(
    target: KafkaSinkTarget, fences: Fences
) -> None:
    often = replace(target, at_least_once=True)
    paused, newer = opened(often, fences), opened(often, fences)
    written = newer.write(spread(1, 2), make_fence(sequence=0)).fence
    with pytest.raises(SinkSuperseded):
        paused.write(spread(1, 2), make_fence(sequence=0))
    last = opened(often, fences).last()
    assert last is not None
    assert last.fence == written
