"""What a runner must not forget: open commands, and what a running pipeline cannot become."""

from unit.stage_runner.fakes import (
    EXAMPLE,
    UID,
    World,
    carry_out,
    command,
    pass_check,
    runner_in,
    running,
)
from waybill_stage_runner.core.pipelines.events import DriverRuns


def test_a_command_is_unanswered_until_its_effect_is_there(world: World) -> None:
    """Its offset is committed by that, so a runner that comes after this one answers it."""
    runner = runner_in(world)
    runner.handle(command(1), 1)
    assert runner.open_commands() == {"c1"}, "it is being checked"
    pass_check(runner, command(1))
    assert runner.open_commands() == {"c1"}
    runner.act()
    assert runner.open_commands() == {"c1"}

    runner.receive(UID, 1, DriverRuns())
    assert runner.open_commands() == {"c1"}, "nobody has acknowledged the answer"
    runner.act()
    assert runner.open_commands() == set()


def test_a_change_that_a_stage_cannot_go_on_with_is_refused_as_a_whole(world: World) -> None:
    runner = running(world)
    before, topics = list(world.records), dict(world.topics)

    carry_out(runner, command(2, manifest=EXAMPLE.replace("topic: orders", "topic: others", 1)), 2)

    assert world.answers[-1] == ("c2", "failed")
    problem = world.problems[-1]
    assert "plan_incompatible" in problem.message
    assert problem.path == "stages.0.inputs"
    assert problem.line is not None
    assert world.records == before
    assert world.topics == topics, "what is refused creates no topic"
    assert not world.stopped


def test_a_command_that_was_refused_takes_no_effect_later(world: World) -> None:
    """The runner before was killed between its answer and the offset."""
    runner = runner_in(world)
    runner.adopt_answered(["c1"])

    runner.handle(command(1), 1)
    runner.act()

    assert world.records == []
    assert world.answers == []
    assert runner.open_commands() == set()
