"""Faults of the running stack: processes killed or held, and when they are back."""

import signal
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from e2e.waiting import eventually
from waybill_local.stack import StackState
from waybill_local.state import ProcessState, StackPhase, load
from waybill_shared.process.failpoints import REACHED

BACK_TIMEOUT_S = 120.0


def process_of(stack: StackState, name: str) -> psutil.Process:
    return psutil.Process(_states(stack)[name].pid)


def kill(processes: Sequence[psutil.Process]) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGKILL)


def kill_services(stack: StackState, names: Sequence[str]) -> None:
    """All of them at once; returns when others are in their place, and ready."""
    before = {name: _states(stack)[name].pid for name in names}
    kill([psutil.Process(pid) for pid in before.values()])

    def back() -> bool:
        now = _states(stack)
        return all(
            now[n].pid != pid and now[n].state is StackPhase.READY for n, pid in before.items()
        )

    eventually(back, within_s=BACK_TIMEOUT_S)


def await_ready(stack: StackState) -> None:
    eventually(
        lambda: all(state.state is StackPhase.READY for state in _states(stack).values()),
        within_s=BACK_TIMEOUT_S,
    )


@contextmanager
def paused(processes: Sequence[psutil.Process]) -> Iterator[None]:
    """They stand still, as if the system had not scheduled them."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGCONT)


@contextmanager
def holding(folder: Path, topic: str, partitions: Iterable[int] = range(8)) -> Iterator[None]:
    """The next that a runner wants to say there is held back, as in a producer's queue."""
    points = [folder / f"{topic}.{partition}.before_begin" for partition in partitions]
    for point in points:
        point.touch()
    try:
        yield
    finally:
        for point in [*points, *folder.glob(f"*{REACHED}")]:
            point.unlink(missing_ok=True)


def _states(stack: StackState) -> dict[str, ProcessState]:
    state = load(stack.folder)
    assert state is not None
    return {process.name: process for process in state.processes}
