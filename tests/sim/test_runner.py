"""The runner's process in the simulation: what of its work the checker is told."""

from collections.abc import Iterator

import pytest

from sim.runner_world import PATIENCE_MS
from sim.shapes import Shape, Stage
from sim.world import Rates, World

SHAPE = Shape(inputs=("a",), stages=(Stage("load", ("a",), ("lake",)),))


class _Silent(World):
    """What is not acknowledged never came."""

    def pick(self, count: int) -> int:
        return 0


@pytest.fixture
def world() -> Iterator[World]:
    """With a command for which the runner has lost its patience, and could not say so."""
    world = _Silent(0, [SHAPE])
    world.pipelines[0].command("apply")
    world.patient, world.rates = False, Rates(stuck=1)
    (hosts,) = world.partitions
    hosts.run_runner()  # has it checked
    hosts.run_runner()
    world.clock.now += PATIENCE_MS
    hosts.run_runner()
    yield world
    world.waiters.turn_all()
    world.waiters.close()


def test_command_that_is_refused_is_told_to_the_checker(world: World) -> None:
    (hosts,) = world.partitions
    world.rates = Rates()
    hosts.run_runner()
    assert hosts.operations.refused == {0}


def test_refusal_that_was_never_said_is_forgotten_with_its_partition(world: World) -> None:
    """Whoever gets the partition carries the command out: the answer to it is no refusal."""
    (hosts,) = world.partitions
    hosts.runner.release()
    world.rates = Rates()
    hosts.run_runner()
    hosts.run_runner()
    world.pipelines[0].command("stop")
    hosts.run_runner()

    assert hosts.operations.replies["c1"][0] == "failed"
    assert {record.commanded_at for record in world.records} == {0, 1}
    assert hosts.operations.refused == set()
