"""Topics and drivers in memory do what a runner asks of the real ones."""

import pytest

from contracts.drivers import DriversContract
from contracts.topics import TopicsContract
from unit.stage_runner.fakes import World


class Fake:
    topic = "orders.in"

    def __init__(self) -> None:
        self._world = World()
        self.topics = self.drivers = self._world

    def write(self) -> None:
        """Something stands in every topic there."""

    def settled(self, *wanted: tuple[str, int]) -> bool:
        return {*self._world.living.items()} == {*wanted}


@pytest.fixture
def bench() -> Fake:
    return Fake()


class TestFakeTopics(TopicsContract):
    """Over `World`."""


class TestFakeDrivers(DriversContract):
    """Over `World`."""
