"""Drivers that are paused in big batches, while another one of their pipeline writes.

Whoever reads after a final answer finds every row as often as was promised, and no row of a record
that is dead."""

import random
from contextlib import ExitStack
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from e2e.every_sink import START_TIMEOUT_S, WAIT_S
from e2e.moments import at, draw, faults, paused_driver
from e2e.second_driver import all_end, leader_of, second_driver
from e2e.waiting import drivers_of, eventually
from e2e.waves import Traffic, Waves
from waybill import Client
from waybill_local.stack import StackState

PAUSES, RANDOM_PAUSES = 1, 1  # at named moments, and at any

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def dice(request: pytest.FixtureRequest) -> random.Random:
    return draw(request.node.name)


@pytest.fixture
def waves(client: Client, stack: StackState, catalog: SqlCatalog) -> Waves:
    return Waves(client, stack, catalog)


def test_a_paused_driver_writes_nothing_behind_the_next_one(
    waves: Waves, stack: StackState, failpoints: Path, tmp_path: Path, dice: random.Random
) -> None:
    with Traffic(waves) as traffic:
        for number, point in enumerate(faults(dice, PAUSES, RANDOM_PAUSES)):
            waves.client.wait_pipeline(waves.name, timeout_s=WAIT_S)
            traffic.await_progress()
            folder = tmp_path / str(number)
            folder.mkdir()
            with ExitStack() as others:
                with at(waves, failpoints, point, dice):
                    print(f"pause at {point or 'any moment'}")
                    first, group = drivers_of(stack, waves.uid), leader_of(stack, waves.uid)
                    with paused_driver(stack, group):
                        second = others.enter_context(second_driver(stack, waves.uid, folder))
                        eventually(second.runs, within_s=START_TIMEOUT_S)
                        traffic.await_progress()
                assert all_end(first)
                traffic.await_progress()
    assert traffic.reads > PAUSES
