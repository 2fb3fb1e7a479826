"""What one partition cannot say holds up no other, and nothing that may be written is refused."""

import queue
from collections.abc import Iterable

import pytest

from unit.stage_runner.fakes import UID, World, command, runner_in
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.events import Command
from waybill_stage_runner.adapters.loop import COMMAND_TIMEOUT_S, RETRY_S, Loop
from waybill_stage_runner.app import Runner
from waybill_stage_runner.core.moves import DriverRuns


class Around:
    """Two partitions, a queue of commands, and no driver that says anything."""

    def __init__(self) -> None:
        self.worlds = [World(), World()]
        self.shares = dict(enumerate(map(runner_in, self.worlds)))
        self.waiting: list[tuple[int, int, Command]] = []
        self.held: tuple[int, int, Command] | None = None
        self.events: queue.SimpleQueue[object] = queue.SimpleQueue()
        self.uncommitted: set[str] = set()
        self.now = 0.0

    def runners(self) -> dict[int, Runner]:
        return self.shares

    def next(self, timeout_s: float) -> tuple[int, int, Command] | None:
        if self.held is None and self.waiting:
            self.held = self.waiting.pop(0)
        return self.held

    def done(self) -> None:
        self.held = None

    def later(self) -> None:
        assert self.held is not None
        self.waiting.append(self.held)
        self.held = None

    def commit(self, unanswered: Iterable[str]) -> None:
        self.uncommitted = set(unanswered)


@pytest.fixture
def around(monkeypatch: pytest.MonkeyPatch) -> Around:
    around = Around()
    monkeypatch.setattr("waybill_stage_runner.adapters.loop.time.monotonic", lambda: around.now)
    monkeypatch.setattr("waybill_stage_runner.adapters.loop.time.sleep", lambda seconds: None)
    return around


def turn(turned: Loop, around: Around, seconds: float = RETRY_S) -> None:
    around.now += seconds
    turned.turn()


def test_a_partition_that_kafka_does_not_take_holds_up_no_other(around: Around) -> None:
    turned = Loop(around, around, around)  # type: ignore[arg-type]
    around.worlds[0].mute = True
    around.waiting = [(0, 1, command(1)), (0, 2, command(2, "stop")), (1, 1, command(3))]
    for _ in range(5):
        turn(turned, around)
    assert around.worlds[0].started == []
    assert around.worlds[1].started == [1]

    around.worlds[0].mute = False
    for _ in range(3):
        turn(turned, around)
    assert [record.desired for record in around.worlds[0].records] == ["running", "stopped"]


def test_what_may_be_written_is_never_refused(around: Around) -> None:
    turned = Loop(around, around, around)  # type: ignore[arg-type]
    around.worlds[0].mute = True
    around.waiting = [(0, 1, command(1))]
    for _ in range(int(3 * COMMAND_TIMEOUT_S)):
        turn(turned, around)
    assert around.worlds[0].answers == []
    assert around.uncommitted == {"c1"}

    around.worlds[0].mute = False
    turn(turned, around)
    around.shares[0].hear(UID, 1, DriverRuns())
    turn(turned, around)
    assert around.worlds[0].answers == [("c1", "done")]
    assert around.uncommitted == set()


def test_what_cannot_be_planned_is_refused_in_the_end(
    around: Around, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(plans: object) -> None:
        raise Retryable("kafka is away")

    turned = Loop(around, around, around)  # type: ignore[arg-type]
    monkeypatch.setattr(around.worlds[0], "prepare", away)
    around.waiting = [(0, 1, command(1))]
    for _ in range(int(COMMAND_TIMEOUT_S) - 1):
        turn(turned, around)
    assert around.worlds[0].answers == []
    for _ in range(3):
        turn(turned, around)
    assert around.worlds[0].answers == [("c1", "failed")]
    assert around.worlds[0].records == []
