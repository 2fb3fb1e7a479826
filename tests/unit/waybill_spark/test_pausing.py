"""A paused run begins no batch, and says that it is paused when its batches have ended."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from integration.waiting import eventually
from waybill_shared.contract.commands import StopMode
from waybill_spark.driver.pausing import Pausing
from waybill_spark.driver.run_control import PauseState, RunControl
from waybill_spark.tracking.batch_gate import BatchGate
from waybill_spark.tracking.stopping import StageClosed

WAIT_S = 120.0
RUNS, PAUSED = PauseState(paused=False, order=0), PauseState(paused=True, order=1)


class Batch:
    """A batch in a thread of its own, as Spark has it; it ends when it is let go."""

    def __init__(self, gate: BatchGate) -> None:
        self.began, self.go = threading.Event(), threading.Event()
        self.closed = False
        self.thread = threading.Thread(target=self._run, args=(gate,), daemon=True)
        self.thread.start()

    def _run(self, gate: BatchGate) -> None:
        try:
            with gate.batch():
                self.began.set()
                self.go.wait(WAIT_S)
        except StageClosed:
            self.closed = True

    def end(self) -> None:
        self.go.set()
        self.thread.join(WAIT_S)
        assert not self.thread.is_alive()


@contextmanager
def running(gate: BatchGate) -> Iterator[Batch]:
    batch = Batch(gate)
    assert batch.began.wait(WAIT_S)
    yield batch
    batch.end()


def test_a_paused_gate_lets_the_running_batch_end_and_none_begin() -> None:
    gate = BatchGate()
    with running(gate):
        gate.set_paused(paused=True)
        pauses = [gate.is_paused]
    assert [*pauses, gate.is_paused] == [False, True], "when the batch has ended"
    later = Batch(gate)
    assert not later.began.wait(0.05)
    gate.set_paused(paused=False)
    assert later.began.wait(WAIT_S)
    later.end()


@pytest.mark.parametrize("paused", [False, True])
def test_a_closed_gate_lets_no_batch_begin(paused: bool) -> None:
    gate = BatchGate()
    gate.set_paused(paused=paused)
    waiting = Batch(gate) if paused else None
    gate.close()
    late = Batch(gate)
    for batch in filter(None, (waiting, late)):
        batch.thread.join(WAIT_S)
        assert batch.closed


def test_closing_a_gate_waits_for_its_batch() -> None:
    gate = BatchGate()
    with running(gate) as batch:
        closing = threading.Thread(target=gate.close)
        closing.start()
        closing.join(0.05)
        assert closing.is_alive()
        batch.end()
        closing.join(WAIT_S)
        assert not closing.is_alive()


class Stage:
    """A gate, and what a run does to its sinks."""

    def __init__(self, gate: BatchGate, log: list[object]) -> None:
        self._gate, self._log = gate, log

    @property
    def is_paused(self) -> bool:
        return self._gate.is_paused

    def set_paused(self, *, paused: bool) -> None:
        self._gate.set_paused(paused=paused)

    def move_claims(self) -> None:
        self._log.append("claims moved")


class Reports:
    def __init__(self, *gates: BatchGate, first: PauseState = RUNS) -> None:
        self.control = RunControl()
        self.log: list[object] = []
        stages = [Stage(gate, self.log) for gate in gates]
        self.pausing = Pausing(stages, self.control, first, self.log.append)

    @property
    def made(self) -> list[PauseState]:
        return [each for each in self.log if isinstance(each, PauseState)]

    def after(self, *orders: PauseState) -> list[PauseState]:
        for order in orders:
            self.control.set_paused(order)
        self.pausing.follow()
        return self.made


def test_a_pause_is_reported_when_all_stages_have_ended_their_batch() -> None:
    idle, busy = BatchGate(), BatchGate()
    reports = Reports(idle, busy)
    assert reports.after() == [RUNS]
    with running(busy):
        assert reports.after(PAUSED) == [RUNS]
    assert reports.after() == [RUNS, PAUSED]
    assert reports.after() == [RUNS, PAUSED], "once"
    resumed = PauseState(paused=False, order=2)
    assert reports.after(resumed) == [RUNS, PAUSED, resumed]
    assert not idle.is_paused
    assert not busy.is_paused


def test_only_the_newest_order_is_reported() -> None:
    gate = BatchGate()
    again = PauseState(paused=True, order=3)
    reports = Reports(gate)
    assert reports.after(PAUSED, PauseState(paused=False, order=2), again) == [again]


def test_a_run_may_begin_paused() -> None:
    gate = BatchGate()
    first = PauseState(paused=True, order=0)
    assert Reports(gate, first=first).after() == [first]
    assert gate.is_paused


def test_claims_move_before_a_pause_is_reported_and_never_else() -> None:
    """A driver of an earlier run that nobody sees could commit its batch in the pause."""
    gate = BatchGate()
    reports = Reports(gate)
    with running(gate):
        reports.after(PAUSED)
        assert reports.log == []
    reports.after()
    reports.after(PauseState(paused=False, order=2))
    assert reports.log == ["claims moved", PAUSED, PauseState(paused=False, order=2)]


def test_an_order_ends_the_wait_for_one() -> None:
    control = RunControl()
    waiting = threading.Thread(target=control.wait_for_order, args=(WAIT_S,))
    waiting.start()
    control.set_paused(PAUSED)
    eventually(lambda: not waiting.is_alive(), within_s=WAIT_S / 2)
    waiting = threading.Thread(target=control.wait_for_order, args=(WAIT_S,))
    waiting.start()
    control.stop(StopMode.CHECKPOINT)
    eventually(lambda: not waiting.is_alive(), within_s=WAIT_S / 2)
