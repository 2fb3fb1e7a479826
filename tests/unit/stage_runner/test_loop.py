"""What one partition cannot say holds up no other, and nothing that may be written is refused."""

import threading
from collections.abc import Iterable
from dataclasses import replace

import pytest

from unit.stage_runner.fakes import UID, World, command, runner_in
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.events import Command
from waybill_shared.kafka.partition_producer import PartitionLost
from waybill_shared.process.health import Health
from waybill_stage_runner.app.ports import Checked
from waybill_stage_runner.app.runner import Runner
from waybill_stage_runner.core.pipelines.events import DriverRuns
from waybill_stage_runner.core.pool.model import Driver
from waybill_stage_runner.loop import COMMAND_TIMEOUT_S, RETRY_S, Loop


class Around:
    """Two partitions, a queue of commands, and no driver that says anything."""

    def __init__(self) -> None:
        self.worlds = [World(), World()]
        self.shares = dict(enumerate(map(runner_in, self.worlds)))
        self.waiting: list[tuple[int, int, Command]] = []
        self.held: tuple[int, int, Command] | None = None
        self.uncommitted: set[str] = set()
        self.released: set[int] = set()
        self.now = 0.0
        self.checks_end = True

    def runners(self) -> dict[int, Runner]:
        return self.shares

    def release(self, partitions: Iterable[int]) -> None:
        self.released.update(partitions)

    def receive(self, timeout_s: float) -> Iterable[Checked]:
        """Every check finds nothing."""
        if not self.checks_end:
            return []
        checks = [check for world in self.worlds for check in world.checks]
        for world in self.worlds:
            world.checks.clear()
        return [Checked(check_id=check) for check in checks]

    def all(self) -> Iterable[Driver]:
        return ()

    def next(self, timeout_s: float) -> tuple[int, int, Command] | None:
        if self.held is None and self.waiting:
            self.held = self.waiting.pop(0)
        return self.held

    def finish(self) -> None:
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
    monkeypatch.setattr("waybill_stage_runner.loop.time.monotonic", lambda: around.now)
    monkeypatch.setattr("waybill_stage_runner.loop.time.sleep", lambda seconds: None)
    return around


def away(plans: object) -> None:
    raise Retryable("kafka is away")


def turn(turned: Loop, around: Around, seconds: float = RETRY_S) -> None:
    around.now += seconds
    for world in around.worlds:
        world.waited += round(seconds * 1000)
    turned.run_once()


def test_a_partition_that_kafka_does_not_take_holds_up_no_other(around: Around) -> None:
    turned = Loop(around, around, around, Health())  # type: ignore[arg-type]
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


def test_a_check_holds_up_only_its_pipeline_and_its_offset_is_not_committed(around: Around) -> None:
    turned = Loop(around, around, around, Health())  # type: ignore[arg-type]
    other = replace(command(4, "start"), pipeline_uid="other")
    around.checks_end = False
    around.waiting = [(0, 1, command(1)), (0, 2, command(2, "stop")), (0, 3, other)]
    for _ in range(4):
        turn(turned, around)
    assert around.worlds[0].records == []
    assert around.worlds[0].answers == [("c4", "failed")], "it does not exist"
    assert around.uncommitted == {"c1", "c2"}

    around.checks_end = True
    around.waiting = [(0, 4, command(5, "start"))]
    for _ in range(4):
        turn(turned, around)
    assert [record.commanded_at for record in around.worlds[0].records] == [1, 2, 4]


def test_what_may_be_written_is_never_refused(around: Around) -> None:
    turned = Loop(around, around, around, Health())  # type: ignore[arg-type]
    around.worlds[0].mute = True
    around.waiting = [(0, 1, command(1))]
    for _ in range(int(3 * COMMAND_TIMEOUT_S)):
        turn(turned, around)
    assert around.worlds[0].answers == []
    assert around.uncommitted == {"c1"}

    around.worlds[0].mute = False
    turn(turned, around)
    around.shares[0].receive(UID, 1, DriverRuns())
    turn(turned, around)
    assert around.worlds[0].answers == [("c1", "done")]
    assert around.uncommitted == set()


def test_what_cannot_be_planned_is_refused_in_the_end(
    around: Around, monkeypatch: pytest.MonkeyPatch
) -> None:
    turned = Loop(around, around, around, Health())  # type: ignore[arg-type]
    monkeypatch.setattr(around.worlds[0], "prepare", away)
    around.waiting = [(0, 1, command(1))]
    for _ in range(int(COMMAND_TIMEOUT_S) - 1):
        turn(turned, around)
    assert around.worlds[0].answers == []
    for _ in range(3):
        turn(turned, around)
    assert around.worlds[0].answers == [("c1", "failed")]
    assert around.worlds[0].records == []


def test_a_command_that_waits_for_its_topics_holds_up_only_its_pipeline(
    around: Around, monkeypatch: pytest.MonkeyPatch
) -> None:
    turned = Loop(around, around, around, Health())  # type: ignore[arg-type]
    monkeypatch.setattr(around.worlds[0], "prepare", away)
    other = replace(command(2, "start"), pipeline_uid="other")
    around.waiting = [(0, 1, command(1)), (0, 2, other), (1, 1, command(3))]
    for _ in range(4):
        turn(turned, around, 0.0)
    turn(turned, around)
    turn(turned, around, 0.0)
    assert around.worlds[0].answers == [("c2", "failed")], (
        "it does not exist, and is told so at once"
    )
    assert around.worlds[1].started == [1]
    assert around.uncommitted == {"c1", "c3"}


def test_command_whose_partition_went_takes_no_time_from_the_next(
    around: Around, monkeypatch: pytest.MonkeyPatch
) -> None:
    turned = Loop(around, around, around, Health())  # type: ignore[arg-type]
    around.waiting = [(1, 1, command(1))]
    for _ in range(4):
        turn(turned, around)
    for world in around.worlds:
        monkeypatch.setattr(world, "prepare", away)
    around.waiting = [(0, 1, command(2))]
    for _ in range(4):
        turn(turned, around)
    del around.shares[0]
    turn(turned, around, COMMAND_TIMEOUT_S)

    around.waiting = [(1, 2, command(3, "restart"))]
    for _ in range(3):
        turn(turned, around)
    assert ("c3", "failed") not in around.worlds[1].answers, "it has 30 seconds of its own"


def test_a_runner_that_was_shut_out_lets_go_and_says_so(
    around: Around, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shut_out(plans: object) -> None:
        raise PartitionLost("another took over")

    turned = Loop(around, around, around, Health())  # type: ignore[arg-type]
    monkeypatch.setattr(around.worlds[0], "prepare", shut_out)
    around.waiting = [(1, 1, command(1)), (0, 1, command(2))]
    around.now = RETRY_S

    assert not turned.run(threading.Event())

    assert around.released == {0, 1}


def test_a_turn_that_fails_is_tried_again_until_the_runner_is_told_to_stop(
    around: Around, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = threading.Event()
    faults = [Retryable("kafka is away")]

    def next_command(timeout_s: float) -> None:
        if faults:
            raise faults.pop()
        stop.set()

    turned = Loop(around, around, around, Health())  # type: ignore[arg-type]
    monkeypatch.setattr(around, "next", next_command)
    monkeypatch.setattr("waybill_stage_runner.loop.RETRY_S", 0.0)

    assert turned.run(stop)

    assert around.released == set()
