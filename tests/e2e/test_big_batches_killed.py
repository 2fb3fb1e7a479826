"""Drivers that are killed in big batches, while records come in.

Whoever reads after a final answer finds every row as often as was promised, and no row of a record
that is dead."""

import random
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from e2e.moments import at, draw, faults, kill_driver
from e2e.waves import Traffic, Waves
from waybill import Client
from waybill_local.stack import StackState

KILLS, RANDOM_KILLS = 3, 1  # at named moments, and at any

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def dice(request: pytest.FixtureRequest) -> random.Random:
    return draw(request.node.name)


@pytest.fixture
def waves(client: Client, stack: StackState, catalog: SqlCatalog) -> Waves:
    return Waves(client, stack, catalog)


def test_killed_drivers_write_what_was_promised(
    waves: Waves, stack: StackState, failpoints: Path, dice: random.Random
) -> None:
    with Traffic(waves) as traffic:
        for point in faults(dice, KILLS, RANDOM_KILLS):
            traffic.await_progress()
            with at(waves, failpoints, point, dice):
                print(f"kill at {point or 'any moment'}")
                kill_driver(stack, waves.uid)
        traffic.await_progress()
    assert traffic.reads > KILLS
    assert waves.tables_left() == []
