"""Moments in big batches at which drivers are killed or paused: named ones, and any other."""

import os
import random
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from threading import Event

import psutil

from e2e.every_sink import WAIT_S
from e2e.second_driver import paused
from e2e.waiting import drivers_of, eventually
from e2e.waves import Waves
from waybill_local.stack import StackState
from waybill_shared.process.failpoints import REACHED

SEED = 20_261_128
MOMENT_S = (0.2, 5.0)  # of a batch, from an answer on
EDGES = {
    "added": ("in_share", "before_commit", "after_commit"),
    "newest": ("in_share", "before_commit", "after_commit"),
    "warehouse": ("in_share", "after_copy", "before_commit", "after_commit"),
    "records": ("in_share", "before_commit", "after_commit"),
}
POINTS = [f"{sink}.{edge}" for sink, edges in EDGES.items() for edge in edges]


def draw(test: str) -> random.Random:
    """Return dice of a test, so that one test alone is drawn as all of them."""
    seed = int(os.environ.get("SEED", SEED))
    print(f"SEED={seed}")
    return random.Random(f"{seed} {test}")


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
