"""What is said for good is right with several brokers, of which one lags or is dead.

The one that lags tells clients what was there before: the id of a topic that was created anew, and
as leader of the old one where it begins and ends.
"""

import asyncio
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import pyarrow as pa
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import NewTopic

from builders import make_fence, make_input, make_record
from integration.cluster import NODES, Cluster, create, delete, three_brokers
from integration.three_brokers import (
    ADMIN_TIMEOUT_S,
    ANEW,
    BEFORE,
    CLIENTS,
    COMPACTED,
    FENCES,
    LATE,
    NOW,
    SILENCE_S,
    TRANSACTIONS,
    WITHIN_S,
    after,
    committed,
    empty,
    fill,
    opened,
    registry,
    rows,
    sides,
    sink_in,
    source,
    topics_of,
)
from integration.waiting import eventually
from waybill_ingress.adapters.kafka.producer import ProducerLog
from waybill_ingress.core.rows import Record
from waybill_ingress.settings import Settings
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.events import Fence, Output
from waybill_shared.kafka import admin as kafka_admin
from waybill_shared.kafka import clients
from waybill_shared.kafka.admin import KafkaAdmin, make_admin
from waybill_shared.kafka.clients import read_to_end
from waybill_stage_runner.core.pipelines.planning import TopicPlan

T = TypeVar("T")


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with three_brokers(tmp_path_factory.mktemp("brokers")) as made:
        yield made


@pytest.fixture
def cluster(three: Cluster) -> Cluster:
    """All of them, also those that the test before has killed."""
    three.start(*(node for node in NODES if node not in three.running))
    eventually(three.whole, within_s=WITHIN_S)
    return three


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_admin, "ADMIN_TIMEOUT_S", ADMIN_TIMEOUT_S)
    monkeypatch.setattr(clients, "SILENCE_S", SILENCE_S)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    """`node` hears nothing of the others since before topics were created anew."""

    cluster: Cluster
    node: int
    topic_id: str
    late_id: str
    out_id: str
    newest: int
    """The sequence of the fence that was written last."""

    def told(self, ask: Callable[[KafkaAdmin], T]) -> list[T]:
        """The answers to clients that meet the one that lags first; to ask later is none."""
        found: list[T] = []

        def one_asks(_: int) -> None:
            with suppress(Retryable):
                found.append(ask(make_admin(self.cluster.among(self.node))))

        with ThreadPoolExecutor(CLIENTS) as pool:
            list(pool.map(one_asks, range(CLIENTS)))
        return found


@pytest.fixture(scope="class")
def lag(three: Cluster) -> Iterator[Lag]:
    node = three.follower()
    others = [other for other in NODES if other != node]
    everywhere = make_admin(three.kafka)
    create(everywhere, ANEW, node, *others)
    create(everywhere, FENCES, node, *others, **COMPACTED)
    out_id = create(everywhere, "out", *others)
    fill(three.kafka, ANEW, BEFORE[1])
    removed = everywhere.client.delete_records([TopicPartition(ANEW, 0, BEFORE[0])])
    assert all(future.result() for future in removed.values())
    first = opened(everywhere, "out").write(rows(1), make_fence(sequence=0)).fence
    with three.cut_off(node):
        eventually(lambda: three.leader(FENCES, others[0]) != node, within_s=WITHIN_S)
        elsewhere = make_admin(three.among(*others))
        delete(elsewhere, ANEW)
        topic_id = create(elsewhere, ANEW, *others)
        fill(three.among(*others), ANEW, NOW[1])
        late_id = create(elsewhere, LATE, *others)
        second = opened(elsewhere, "out").write(rows(2), after(first)).fence
        yield Lag(
            cluster=three,
            node=node,
            topic_id=topic_id,
            late_id=late_id,
            out_id=out_id,
            newest=second.batch.sequence,
        )
    eventually(three.whole, within_s=WITHIN_S)


class TestLagging:
    """A topic was deleted and created anew, and partitions have other leaders."""

    def test_input_is_not_lost_for_an_id_that_its_topic_had_before(self, lag: Lag) -> None:
        wanted = {ANEW: lag.topic_id}
        told = lag.told(lambda admin: source(admin).ids(wanted))
        assert told
        assert all(ids == wanted for ids in told)

    def test_input_is_not_lost_that_one_broker_does_not_know(self, lag: Lag) -> None:
        wanted = {LATE: lag.late_id}
        told = lag.told(lambda admin: source(admin, absent_s=0.0).ids(wanted))
        assert told
        assert all(ids == wanted for ids in told)

    def test_records_are_not_lost_that_only_the_topic_before_had_removed(self, lag: Lag) -> None:
        told = lag.told(lambda admin: source(admin).starts(ANEW, {}))
        assert told
        assert all(starts == {0: NOW[0]} for starts in told)

    def test_rows_in_a_sink_are_not_lost_for_an_id_of_before(self, lag: Lag) -> None:
        output = Output(topic=ANEW, topic_id=lag.topic_id, partition=0, first=NOW[0], end=NOW[1])
        fence = replace(make_fence(), outputs=(output,))
        told = lag.told(lambda admin: sink_in(admin, ANEW, lag.topic_id).await_visible(fence))
        assert told
        assert all(told)

    def test_driver_goes_on_behind_the_newest_fence(self, lag: Lag) -> None:
        """Behind an older one it would write rows a second time."""

        def newest(admin: KafkaAdmin) -> int | None:
            last = sink_in(admin, "out", lag.out_id).last()
            return last.fence.batch.sequence if last is not None else None

        told = lag.told(newest)
        assert told
        assert all(sequence == lag.newest for sequence in told)

    def test_who_takes_over_reads_all_that_stands(self, lag: Lag) -> None:
        def read(admin: KafkaAdmin) -> int:
            return len([*read_to_end(admin.cluster, FENCES, [0])])

        told = lag.told(read)
        assert told
        assert all(count == lag.newest + 1 for count in told)

    def test_pipeline_does_not_begin_in_the_topic_before(self, lag: Lag) -> None:
        plan = TopicPlan(topic=ANEW, partitions=1, starting="earliest")
        told = lag.told(lambda admin: topics_of(admin).prepare([plan])[ANEW])
        for state in told:  # maybe none: brokers have to agree
            assert state.topic_id == lag.topic_id
            assert (state.starts, state.ends) == ({0: NOW[0]}, {0: NOW[1]})

    def test_write_is_not_refused_for_an_id_of_before(self, lag: Lag) -> None:
        read = replace(make_input(topic_id=lag.topic_id), topic=ANEW)

        async def present(admin: KafkaAdmin) -> str:
            return (await registry(admin).present(make_record(), read, fresh=True)).topic_id

        told = lag.told(lambda admin: asyncio.run(present(admin)))
        assert told
        assert all(topic_id == lag.topic_id for topic_id in told)


def test_who_asks_too_early_of_a_new_topic_is_told_later(cluster: Cluster) -> None:
    """The first broker that is asked may not know it yet, or nobody who leads it."""
    admin = make_admin(cluster.kafka)
    for number in range(10):
        topic = f"new.{number}"
        admin.client.create_topics([NewTopic(topic, 1, 3)])[topic].result()
        eventually(partial(empty, admin, topic))


def test_what_a_dead_broker_led_is_written_and_told_by_others(cluster: Cluster) -> None:
    """Nothing is refused or there twice, and each record stands where ingress was told."""
    create(make_admin(cluster.kafka), "written", *NODES)
    reader = make_admin(cluster.kafka)
    eventually(lambda: sides(reader, "written") == (0, 0, 0), within_s=WITHIN_S)
    leader, survivor = NODES[:2]
    assert cluster.leader("written", survivor) == leader
    placed: dict[int, int] = {}

    async def write(log: ProducerLog, number: int) -> None:
        written = await log.append("written", [Record(0, None, b"%d" % number)])
        assert not written.failed
        ((_, placed[number]),) = written.delivered

    async def run() -> None:
        options = Settings().producer_options()
        with ProducerLog(cluster.kafka, options, on_fatal=pytest.fail) as log:
            for start in range(0, 600, 100):
                writes = [write(log, number) for number in range(start, start + 100)]
                if start == 300:
                    writes.append(asyncio.to_thread(cluster.kill, leader))
                await asyncio.gather(*writes)

    asyncio.run(run())
    assert cluster.leader("written", survivor) != leader
    assert sorted(placed) == list(range(600))

    def stands() -> bool:
        try:
            found = {offset: int(value) for offset, value in committed(cluster, "written")}
        except Retryable:  # the dead one may still count as alive
            return False
        return found == {offset: number for number, offset in placed.items()}

    eventually(stands, within_s=WITHIN_S)
    eventually(lambda: sides(reader, "written") == (0, 600, 600), within_s=WITHIN_S)


def test_batch_is_there_once_when_its_coordinator_dies(cluster: Cluster) -> None:
    """Whether it was written or not, the next driver finds it out and goes on."""
    admin = make_admin(cluster.kafka)
    create(admin, FENCES, *NODES, **COMPACTED)
    create(admin, "batches", *NODES)
    sink = opened(admin, "batches")
    first = sink.write(rows(1, 2), make_fence(sequence=0)).fence
    coordinator = cluster.leader(TRANSACTIONS, NODES[0])

    def dying() -> Iterator[pa.RecordBatch]:
        yield from rows(3)
        cluster.kill(coordinator)
        yield from rows(4)

    with suppress(Retryable):
        sink.write(dying(), after(first))

    def goes_on() -> bool:
        try:
            driver = opened(make_admin(cluster.kafka), "batches")
            last = driver.last()
            assert last is not None
            if last.fence.batch.sequence == first.batch.sequence:
                last = driver.write(rows(3, 4), after(first))
            return driver.await_visible(last.fence) and whole(last.fence)
        except Retryable:
            return False

    def whole(fence: Fence) -> bool:
        (output,) = fence.outputs
        found = [(json.loads(value)["order_id"], at) for at, value in committed(cluster, "batches")]
        assert sorted(number for number, _ in found) == [1, 2, 3, 4]
        assert all((output.first <= at < output.end) == (number > 2) for number, at in found)
        return fence.batch.sequence == 1

    eventually(goes_on, within_s=WITHIN_S)
