"""The runner's promises, with fakes for Kafka and for driver processes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import pytest

from shared.errors import Retryable
from shared.events import Command, Definition, PipelineRecord, Problem
from stage_runner.app import Runner
from stage_runner.core.planning import TopicPlan, TopicState
from stage_runner.core.supervision import DriverEnded, DriverRuns, PipelineState

EXAMPLE = (Path(__file__).parents[3] / "examples" / "orders.yaml").read_text()
UID = "uid"


@dataclass
class World:
    """Everything around a runner; remembers what was asked of it."""

    records: list[PipelineRecord] = field(default_factory=list)
    definitions: list[Definition] = field(default_factory=list)
    answers: list[tuple[str, str]] = field(default_factory=list)
    phases: list[str] = field(default_factory=list)
    started: list[int] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)
    claims: int = 0
    away: bool = False

    def prepare(self, plans: Iterable[TopicPlan]) -> Mapping[str, TopicState]:
        if self.away:
            raise Retryable("kafka is away")
        return {plan.topic: TopicState(topic_id=plan.topic, starts={0: 0}) for plan in plans}

    def record(self, record: PipelineRecord) -> None:
        self.records.append(record)

    def definition(self, record: PipelineRecord, body: Definition) -> None:
        self.definitions.append(body)

    def claim(self, record: PipelineRecord) -> int:
        self.claims += 1
        return self.claims

    def phase(self, state: PipelineState, phase_from: str | None) -> None:
        if phase_from is not None:
            self.phases.append(state.phase)

    def answer(
        self,
        command: Command,
        state: str,
        errors: tuple[Problem, ...],
        warnings: tuple[str, ...],
    ) -> None:
        self.answers.append((command.id, state))

    def start(self, record: PipelineRecord, epoch: int) -> None:
        self.started.append(epoch)

    def stop(self, pipeline_uid: str, *, force: bool) -> None:
        self.stopped.append(pipeline_uid)

    def now_ms(self) -> int:
        return 1_000


@pytest.fixture
def world() -> World:
    return World()


def runner_in(world: World) -> Runner:
    return Runner(world, world, world, world)


Wish = Literal["apply", "start", "stop", "delete"]


def command(number: int, action: Wish = "apply", manifest: str = EXAMPLE) -> Command:
    return Command(
        tenant="default",
        pipeline_uid=UID,
        id=f"c{number}",
        pipeline="orders",
        action=action,
        manifest=manifest if action == "apply" else None,
        actor="ada",
        request_id="r",
        at=0,
    )


def running(world: World) -> Runner:
    runner = runner_in(world)
    runner.handle(command(1), 1)
    runner.act()
    runner.hear(UID, 1, DriverRuns())
    runner.act()
    return runner


def test_an_applied_pipeline_is_answered_when_it_runs(world: World) -> None:
    running(world)

    assert world.answers == [("c1", "done")]
    assert world.phases == ["Starting", "Running"]
    assert [record.generation for record in world.records] == [1]


def test_what_an_earlier_driver_tells_late_changes_nothing(world: World) -> None:
    runner = running(world)
    record = world.records[-1]
    runner.release(UID)
    runner.adopt(record)
    runner.act()
    assert world.started == [1, 2]

    runner.hear(UID, 1, DriverEnded(exit_code=-9))
    runner.act()
    runner.hear(UID, 2, DriverRuns())
    runner.act()

    assert world.started == [1, 2]
    assert world.phases[-1] == "Running"


def test_adopting_twice_starts_one_driver(world: World) -> None:
    runner = running(world)

    runner.adopt(world.records[-1])
    runner.act()

    assert world.started == [1]


def test_commands_that_come_again_change_nothing(world: World) -> None:
    """After a restart: apply, apply of a change, stop; all were answered."""
    first = running(world)
    first.handle(command(2, manifest=EXAMPLE.replace("0.2", "0.3")), 2)
    first.handle(command(3, "stop"), 3)
    first.act()
    first.hear(UID, 1, DriverEnded(exit_code=0))
    first.act()
    last = world.records[-1]
    assert (last.generation, last.desired) == (2, "stopped")
    second_world = World()
    second = runner_in(second_world)
    second.adopt(last)
    second.act()

    second.handle(command(1), 1)
    second.handle(command(2, manifest=EXAMPLE.replace("0.2", "0.3")), 2)
    second.act()

    assert second_world.records == []
    assert second_world.started == []
    assert second_world.answers == []

    second.handle(command(3, "stop"), 3)
    second.act()
    assert second_world.answers == [("c3", "done")], "it may have died before the answer"
    assert second_world.records == []


def test_a_command_for_a_deleted_pipeline_makes_no_new_one(world: World) -> None:
    runner = runner_in(world)
    record = _deleted_record(world)
    runner.adopt(record)

    runner.handle(command(9), 9)
    runner.handle(command(4, "stop"), 4)

    assert world.answers == [("c9", "failed")]
    assert world.started == []
    assert world.definitions[-1].deleted


def test_what_could_not_be_carried_out_is_refused_in_the_end(world: World) -> None:
    world.away = True
    runner = runner_in(world)

    with pytest.raises(Retryable):
        runner.handle(command(1), 1)
    runner.refuse(command(1), "kafka is away")

    assert world.answers == [("c1", "failed")]
    assert world.records == []


def _deleted_record(world: World) -> PipelineRecord:
    elsewhere = World()
    running(elsewhere)
    return replace(elsewhere.records[-1], desired="deleted", commanded_at=5)
