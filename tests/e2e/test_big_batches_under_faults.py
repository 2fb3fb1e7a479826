"""Drivers that are killed or paused in big batches, while records come in.

Whoever reads after a final answer finds every row as often as was promised, and no row of a record
that is dead or lost."""

import os
import random
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from threading import Event

import psutil
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from e2e.every_sink import START_TIMEOUT_S, WAIT_S
from e2e.second_driver import all_end, home_of, leader_of, paused, second_driver
from e2e.waiting import drivers_of, eventually
from e2e.waves import Traffic, Waves
from waybill import Client
from waybill_local.stack import StackState
from waybill_shared.process.failpoints import REACHED

SEED = 20_261_128
KILLS, PAUSES = 3, 1  # at named moments
RANDOM_KILLS, RANDOM_PAUSES = 1, 1
MOMENT_S = (0.2, 5.0)  # of a batch, from an answer on
EDGES = {
    "added": ("in_share", "before_commit", "after_commit"),
    "newest": ("in_share", "before_commit", "after_commit"),
    "warehouse": ("in_share", "after_copy", "before_commit", "after_commit"),
    "records": ("in_share", "before_commit", "after_commit"),
}
TABLES = ("added", "newest", "warehouse")
POINTS = [f"{sink}.{edge}" for sink, edges in EDGES.items() for edge in edges]


pytestmark = pytest.mark.timeout(600)  # they take about two minutes each on a quiet machine


@pytest.fixture
def dice(request: pytest.FixtureRequest) -> random.Random:
    """Of each test its own, so that one test alone is drawn as all of them."""
    seed = int(os.environ.get("SEED", SEED))
    print(f"SEED={seed}")
    return random.Random(f"{seed} {request.node.name}")


@pytest.fixture
def waves(client: Client, stack: StackState, catalog: SqlCatalog) -> Waves:
    return Waves(client, stack, catalog)


@contextmanager
def reached(failpoints: Path, name: str) -> Iterator[None]:
    """Somebody is at that point, and goes on behind the `with`, if there still is somebody."""
    point = failpoints / name
    point.touch()
    there = point.with_name(point.name + REACHED)
    try:
        eventually(there.exists, within_s=WAIT_S)
        yield
    finally:
        point.unlink(missing_ok=True)
        there.unlink(missing_ok=True)


@contextmanager
def paused_driver(stack: StackState, group: int) -> Iterator[None]:
    """All processes of a driver; not while they keep the catalog's file from everybody."""

    def stopped() -> bool:
        os.killpg(group, signal.SIGSTOP)
        if catalog_is_free(stack):
            return True
        os.killpg(group, signal.SIGCONT)
        return False

    eventually(stopped, within_s=WAIT_S)
    with paused(group):
        yield


def catalog_is_free(stack: StackState) -> bool:
    with closing(sqlite3.connect(stack.folder / "lakehouse" / "catalog.db", timeout=0.2)) as found:
        try:
            found.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError:
            return False
        return True


def kill_driver(stack: StackState, uid: str) -> None:
    for process in drivers_of(stack, uid):
        with suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGKILL)


def faults(dice: random.Random, named: int, others: int) -> list[str]:
    """Points at which it is to happen; an empty one: at any moment."""
    found = [*dice.sample(POINTS, named), *[""] * others]
    dice.shuffle(found)
    return found


@contextmanager
def at(waves: Waves, failpoints: Path, point: str, dice: random.Random) -> Iterator[None]:
    if not point:
        Event().wait(dice.uniform(*MOMENT_S))
        yield
        return
    with reached(failpoints, f"{waves.uid}.{point}"):
        yield


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


@pytest.mark.parametrize(
    "point", ["added.in_share", "newest.before_commit", "warehouse.after_copy"]
)
def test_a_paused_driver_writes_nothing_of_what_is_lost(
    waves: Waves, stack: StackState, failpoints: Path, tmp_path: Path, point: str
) -> None:
    """Its pipeline is deleted meanwhile. What goes to Kafka at least once nobody can take back."""
    client = waves.client
    assert client.wait(waves.send(client), timeout_s=WAIT_S).kind == "dead_lettered"
    home = home_of(stack, waves.uid)
    assert client.operation(client.stop(waves.name).id, wait_s=WAIT_S).state == "done"
    with second_driver(stack, waves.uid, tmp_path, home) as second:
        eventually(second.runs, within_s=START_TIMEOUT_S)
        (failpoints / f"{waves.uid}.{point}").touch()
        token = waves.send(client)
        with reached(failpoints, f"{waves.uid}.{point}"), paused_driver(stack, second.process.pid):
            deletion = client.operation(client.delete(waves.name).id, wait_s=WAIT_S)
            assert deletion.state == "done", deletion.errors
            assert client.wait(token, timeout_s=WAIT_S).kind == "lost"
            before = waves.found()
        eventually(second.ended, within_s=WAIT_S)

    after, sink = waves.found(), point.partition(".")[0]
    assert not {*waves.given[token].good} <= after[sink].keys()
    assert {each: after[each] for each in TABLES} == {each: before[each] for each in TABLES}
