"""What the simulation has around ingress and runners does what the real things do."""

from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any, TypeVar, cast

import pytest

from contracts.drivers import DriversContract
from contracts.follower import FollowerContract
from contracts.log import LogContract
from contracts.log import TopicsContract as TopicsOfIngressContract
from contracts.topics import TopicsContract
from sim.clients import Follower, finished
from sim.log import Row
from sim.shapes import Shape, Stage
from sim.world import World
from waybill_shared.contract.events import PipelineRecord

T = TypeVar("T")
SHAPE = Shape(inputs=("a",), stages=(Stage("load", ("a",), ("lake",)),))


class Asked:
    """Kafka as ingress sees it."""

    topic = "a.in"

    def __init__(self, world: World) -> None:
        self._world = world
        self.log = self.topics = world.ingress
        self.create_anew()

    def run(self, work: Callable[[], Awaitable[T]]) -> T:
        return finished(cast(Coroutine[Any, Any, T], work()))

    def delete(self) -> None:
        self._world.cluster.delete(self.topic)

    def create_anew(self) -> None:
        self._world.cluster.create(self.topic, self._world.topic_id(), partitions=2)


class Following:
    def __init__(self) -> None:
        self._records: list[PipelineRecord] = []
        self.directory = self.news = Follower(self._records)

    def run(self, work: Callable[[], Awaitable[T]]) -> T:
        return finished(cast(Coroutine[Any, Any, T], work()))

    def tell(self, record: PipelineRecord) -> None:
        self._records.append(record)


class Run:
    """Topics and drivers as a runner sees them."""

    topic = "a.in"

    def __init__(self, world: World) -> None:
        self._world = world
        (hosts,) = world.partitions
        self.topics, self.drivers = hosts.runner, hosts.runner.drivers

    def write(self) -> None:
        for partition in self._world.cluster.topics[self.topic].partitions:
            partition.append(Row(1))

    def settled(self, *wanted: tuple[str, int]) -> bool:
        return {(d.record.pipeline_uid, d.epoch) for d in self._world.alive()} == {*wanted}


@pytest.fixture
def world() -> Iterator[World]:
    world = World(0, [SHAPE])
    yield world
    world.waiters.turn_all()
    world.waiters.close()


@pytest.fixture
def asked(world: World) -> Asked:
    return Asked(world)


@pytest.fixture(name="bench")
def _run(world: World) -> Run:
    return Run(world)


class TestRunnersTopics(TopicsContract):
    """Over `RunnerProcess`."""


class TestRunnersDrivers(DriversContract):
    """Over `LocalDrivers`."""


class TestIngressLog(LogContract):
    @pytest.fixture
    def bench(self, asked: Asked) -> Asked:
        return asked


class TestIngressTopics(TopicsOfIngressContract):
    @pytest.fixture
    def bench(self, asked: Asked) -> Asked:
        return asked


class TestIngressFollower(FollowerContract):
    @pytest.fixture
    def bench(self) -> Following:
        return Following()
