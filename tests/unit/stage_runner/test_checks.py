"""A changed manifest is checked before anything is made of it, and only its pipeline waits."""

from dataclasses import replace

import pytest

from unit.stage_runner.checking import (
    CHANGED,
    OTHER_SINK,
    PROBLEM,
    check_ends,
    elsewhere,
    go_on,
    made,
    take,
)
from unit.stage_runner.fakes import (
    EXAMPLE,
    UID,
    World,
    carry_out,
    command,
    pass_check,
    receive,
    runner_in,
    running,
)
from waybill_shared.contract.commands import Stop, StopMode
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.problems import Slug
from waybill_stage_runner.app.admission import SLOW_MS
from waybill_stage_runner.app.ports import Checked
from waybill_stage_runner.core.pipelines.events import DriverEnded, DriverRuns


def test_an_apply_is_checked_before_anything_is_made_of_it(world: World) -> None:
    runner = runner_in(world)
    nothing = made(world)
    take(runner, command(1))
    runner.tick()
    runner.act()
    assert world.checks == ["c1"]
    assert made(world) == nothing
    assert world.answers == []

    check_ends(runner, "c1")
    assert [record.commanded_at for record in world.records] == [1]
    assert world.started == [1]


def test_what_a_check_refuses_is_answered_with_its_problems_and_changes_nothing(
    world: World,
) -> None:
    runner = running(world)
    before = made(world)
    take(runner, command(2, manifest=OTHER_SINK))
    check_ends(runner, "c2", PROBLEM)
    assert world.answers[1:] == [("c2", "failed")]
    assert (world.problems, world.reasons[-1]) == ([PROBLEM], Slug.INVALID)
    assert made(world) == before
    assert runner.open_commands() == set()


def test_nothing_is_made_of_a_first_manifest_that_is_refused(world: World) -> None:
    runner = runner_in(world)
    nothing = made(world)
    take(runner, command(1))
    check_ends(runner, "c1", PROBLEM)
    assert world.answers == [("c1", "failed")]
    assert made(world) == nothing
    assert list(runner.states) == []


@pytest.mark.parametrize("action", ["apply", "start", "stop", "restart", "delete"])
def test_what_makes_no_driver_run_another_text_needs_no_check(world: World, action: str) -> None:
    runner = running(world)
    take(runner, command(2, action))
    assert world.checks == ["c1"]
    assert world.records[-1].commanded_at == 2


def test_what_came_too_late_is_not_checked(world: World) -> None:
    """It was overtaken; or its pipeline is deleted."""
    runner = running(world)
    take(runner, command(5, "stop"), command(4, manifest=CHANGED), command(6, "delete"))
    take(runner, command(7, manifest=CHANGED))
    for epoch in (1, 2):
        receive(runner, epoch, DriverEnded(exit_code=0))
    take(runner, command(8, manifest=CHANGED))
    assert world.checks == ["c1"]
    failed = [each for each, state in world.answers if state == "failed"]
    assert failed == ["c5", "c7", "c8"]


@pytest.mark.parametrize("action", ["stop", "delete", "restart"])
def test_a_command_waits_behind_the_check_of_one_before_it(world: World, action: str) -> None:
    runner = running(world)
    before = made(world)
    take(runner, command(2, manifest=CHANGED), command(3, action))
    assert made(world) == before
    assert runner.open_commands() == {"c2", "c3"}

    check_ends(runner, "c2")
    assert [record.commanded_at for record in world.records] == [1, 2, 3]
    assert ("c2", "failed") in world.answers, "superseded"


def test_a_forced_stop_waits_for_no_check(world: World) -> None:
    runner = running(world)
    forced = replace(command(4, "stop"), body=Stop(mode=StopMode.FORCE))
    take(runner, command(2, manifest=CHANGED), command(3), forced)
    assert [record.commanded_at for record in world.records] == [1, 4]
    assert world.stopped == [UID]
    assert [*zip(world.answers, world.reasons, strict=True)][-2:] == [
        (("c2", "failed"), Slug.SUPERSEDED),
        (("c3", "failed"), Slug.SUPERSEDED),
    ]
    check_ends(runner, "c2")
    assert [record.commanded_at for record in world.records] == [1, 4], "nobody waits for it"


def test_a_second_change_is_checked_when_the_first_is_carried_out(world: World) -> None:
    runner = running(world)
    take(runner, command(2, manifest=CHANGED), command(3, manifest=EXAMPLE))
    assert world.checks == ["c1", "c2"]
    check_ends(runner, "c2")
    assert world.checks == ["c1", "c2", "c3"], "by now another text is in force"
    check_ends(runner, "c3")
    assert [record.manifest.source for record in world.records] == [EXAMPLE, CHANGED, EXAMPLE]


def test_what_waits_behind_a_refused_change_is_carried_out(world: World) -> None:
    runner = running(world)
    take(runner, command(2, manifest=CHANGED), command(3), command(4, "stop"))
    check_ends(runner, "c2", PROBLEM)
    assert world.checks == ["c1", "c2"], "what c3 wants is in force"
    assert [record.commanded_at for record in world.records] == [1, 3, 4]
    assert world.answers[1:] == [("c2", "failed"), ("c3", "done")]


def test_other_pipelines_do_not_wait_for_a_check(world: World) -> None:
    runner = running(world)
    carry_out(runner, elsewhere(command(2)), 2)
    take(runner, command(3, manifest=CHANGED))
    take(runner, elsewhere(command(4, manifest=CHANGED)), elsewhere(command(5, "stop")))
    check_ends(runner, "c4")
    others = [each for each in world.records if each.pipeline_uid == "other"]
    assert [record.commanded_at for record in others] == [2, 4, 5]
    assert runner.open_commands() == {"c3", "c5"}

    check_ends(runner, "c3")
    assert world.records[-1].commanded_at == 3


def test_a_check_whose_drivers_ended_is_answered_so(world: World) -> None:
    runner = running(world)
    before = made(world)
    take(runner, command(2, manifest=CHANGED))
    check_ends(runner, "c2", failed="driver_exited")
    (problem,) = world.problems
    assert "the driver in which it was checked ended" in problem.message
    assert (world.answers[-1], world.reasons[-1]) == (("c2", "failed"), Slug.INTERNAL)
    assert made(world) == before

    take(runner, command(3, manifest=CHANGED))
    assert world.checks[-1] == "c3", "another time it may go well"


def test_a_check_that_took_too_long_is_answered_so(world: World) -> None:
    runner = running(world)
    before = made(world)
    take(runner, command(2, manifest=CHANGED))
    check_ends(runner, "c2", failed="deadline")
    (problem,) = world.problems
    assert problem.message == "it was not compiled in the time that a check has"
    assert (world.answers[-1], world.reasons[-1]) == (("c2", "failed"), Slug.INVALID)
    assert made(world) == before


def test_a_text_that_took_too_long_is_refused_at_once_for_a_while(world: World) -> None:
    """By a clock that nobody sets."""
    runner = running(world)
    take(runner, command(2, manifest=CHANGED))
    check_ends(runner, "c2", failed="deadline")
    world.waited += SLOW_MS - 1
    world.now += 24 * 3_600_000
    take(runner, command(3, manifest=CHANGED))
    assert world.answers[-1] == ("c3", "failed")
    assert world.problems[-1].message == "it was not compiled in the time that a check has"
    assert world.checks == ["c1", "c2"]

    take(runner, command(4, manifest=OTHER_SINK))
    assert world.checks == ["c1", "c2", "c4"], "another text may be faster"
    check_ends(runner, "c4", PROBLEM)
    world.waited += 1
    take(runner, command(5, manifest=CHANGED))
    assert world.checks == ["c1", "c2", "c4", "c5"]


def test_the_same_slow_text_behind_its_own_check_is_refused_once_and_lets_others_by(
    world: World,
) -> None:
    runner = running(world)
    take(runner, *(command(number, manifest=CHANGED) for number in (2, 3)), command(4, "stop"))
    check_ends(runner, "c2", failed="deadline")
    assert world.answers[1:] == [("c2", "failed"), ("c3", "failed")]
    assert world.records[-1].commanded_at == 4


def test_what_waits_for_its_topics_after_its_check_stays_first_and_is_not_checked_again(
    world: World,
) -> None:
    runner = running(world)
    take(runner, command(2, manifest=CHANGED), command(3, "stop"))
    world.away = True
    runner.finish_check(Checked(check_id="c2"))
    for _ in range(2):
        freed = runner.next_ready()
        assert freed is not None
        assert freed[1].id == "c2"
        with pytest.raises(Retryable):
            runner.handle(freed[1], freed[0])
    world.away = False
    go_on(runner)
    assert [record.commanded_at for record in world.records] == [1, 2, 3]
    assert world.checks == ["c1", "c2"]


def test_what_waited_for_its_topics_for_too_long_lets_others_by(world: World) -> None:
    runner = running(world)
    take(runner, command(2, manifest=CHANGED), command(3, "stop"))
    runner.finish_check(Checked(check_id="c2"))
    runner.refuse(command(2, manifest=CHANGED), "kafka is away")
    runner.act()
    go_on(runner)
    assert world.answers[1:] == [("c2", "failed")]
    assert [record.commanded_at for record in world.records] == [1, 3]


def test_a_runner_that_loses_its_partition_forgets_its_checks(world: World) -> None:
    runner = running(world)
    take(runner, command(2, manifest=CHANGED), command(3, "stop"))
    world.checks = ["c2"]
    answers, claims = list(world.answers), world.claims
    runner.release()
    assert world.checks == [], "and the drivers are told"
    check_ends(runner, "c2", PROBLEM)
    check_ends(runner, "c2")
    assert (world.answers, world.claims) == (answers, claims)
    assert runner.next_ready() is None
    assert runner.open_commands() == set()


def test_what_is_checked_or_waits_behind_it_is_unanswered(world: World) -> None:
    runner = runner_in(world)
    runner.handle(command(1), 1)
    runner.handle(command(2, "stop"), 2)
    assert runner.open_commands() == {"c1", "c2"}
    runner.finish_check(Checked(check_id="c1", problems=(PROBLEM,)))
    assert runner.open_commands() == {"c1", "c2"}, "nobody has acknowledged the answer"
    runner.act()
    assert runner.open_commands() == {"c2"}


def test_what_was_being_checked_is_checked_again_after_a_restart(world: World) -> None:
    first = running(world)
    take(first, command(2, manifest=CHANGED))
    second = runner_in(world)
    second.adopt_answered(["c1"])
    second.adopt(world.records[-1])
    second.act()
    take(second, command(2, manifest=CHANGED))
    assert world.checks == ["c1", "c2", "c2"]
    check_ends(second, "c2", PROBLEM)
    check_ends(second, "c2", PROBLEM)
    assert world.answers == [("c1", "done"), ("c2", "failed")]


def test_what_was_answered_before_a_restart_is_not_checked_again(world: World) -> None:
    second = runner_in(world)
    second.adopt_answered(["c1"])
    take(second, command(1))
    assert world.checks == []
    assert world.answers == []


def test_what_was_written_down_before_a_restart_is_not_checked_again(world: World) -> None:
    first = runner_in(world)
    take(first, command(1))
    check_ends(first, "c1")
    second = runner_in(world)
    second.adopt(world.records[-1])
    take(second, command(1))
    receive(second, 2, DriverRuns())
    assert world.checks == ["c1"]
    assert world.answers == [("c1", "done")]


def test_the_check_of_another_runner_is_nothing_to_this_one(world: World) -> None:
    runner = runner_in(world)
    take(runner, command(1))
    check_ends(runner, "c9", PROBLEM)
    assert world.answers == []
    pass_check(runner, command(1))
    runner.act()
    assert world.started == [1]
