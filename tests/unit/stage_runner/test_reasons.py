"""What a command has failed of, in the words that ingress answers with over HTTP."""

from typing import Literal

import pytest

from unit.stage_runner.fakes import (
    EXAMPLE,
    World,
    carry_out,
    command,
    pass_check,
    receive,
    runner_in,
    running,
)
from waybill_shared.contract.events import Command
from waybill_shared.contract.lifecycle_events import LifecycleError
from waybill_shared.contract.problems import Slug
from waybill_stage_runner.app.runner import Runner
from waybill_stage_runner.core.pipelines.command_queue import WAITING_MAX
from waybill_stage_runner.core.pipelines.events import DriverEnded, DriverFailed

OTHER_INPUT = EXAMPLE.replace("topic: orders.in", "topic: others.in", 1)


def deleted(runner: Runner) -> None:
    carry_out(runner, command(2, "delete"), 2)
    receive(runner, 1, DriverEnded(exit_code=0))
    receive(runner, 2, DriverEnded(exit_code=0))


@pytest.mark.parametrize(
    ("refused", "reason"),
    [
        (command(3, manifest="version: 1"), Slug.INVALID),
        (command(3, manifest=OTHER_INPUT), Slug.PLAN_INCOMPATIBLE),
    ],
)
def test_what_is_wrong_with_a_command_is_its_content(
    world: World, refused: Command, reason: Slug
) -> None:
    carry_out(running(world), refused, 3)
    assert (world.answers[-1], world.reasons[-1]) == (("c3", "failed"), reason)


def test_a_change_of_a_deleted_pipeline_came_too_late(world: World) -> None:
    runner = running(world)
    deleted(runner)
    carry_out(runner, command(3), 3)
    carry_out(runner, command(4, "stop"), 4)
    assert world.answers[-2:] == [("c3", "failed"), ("c4", "failed")]
    assert world.reasons[-2:] == [Slug.PIPELINE_GONE] * 2


def test_what_was_never_there_is_gone(world: World) -> None:
    carry_out(runner_in(world), command(1, "stop"), 1)
    assert world.reasons == [Slug.PIPELINE_GONE]


def test_a_restart_on_topics_created_anew_lacks_where_to_begin(world: World) -> None:
    runner = running(world)
    world.topics = {"orders.in": "orders.in#2", "orders.enriched": "orders.enriched#1"}
    carry_out(runner, command(2, "restart"), 2)
    assert world.reasons[-1] is Slug.BEGINNING_NEEDED


def test_a_later_command_supersedes(world: World) -> None:
    runner = runner_in(world)
    carry_out(runner, command(1), 1)
    carry_out(runner, command(2, "stop"), 2)
    assert (world.answers, world.reasons) == ([("c1", "failed")], [Slug.SUPERSEDED])


def test_one_command_more_than_may_wait_is_refused_and_none_of_those_before_it(
    world: World,
) -> None:
    runner = runner_in(world)
    for number in range(1, WAITING_MAX + 3):  # the first is being checked
        runner.handle(command(number), number)
    runner.handle(command(33), 33)  # read again: it waits already
    runner.act()
    assert (world.answers, world.reasons) == ([("c34", "failed")], [Slug.TOO_MANY_COMMANDS])
    assert len(runner.open_commands()) == WAITING_MAX + 1
    pass_check(runner, command(1))
    runner.act()
    runner.handle(command(34), 34)
    assert "c34" in runner.open_commands()


def test_what_the_world_did_not_allow_is_given_up(world: World) -> None:
    runner = runner_in(world)
    runner.refuse(command(1), "kafka is away")
    runner.act()
    assert world.reasons == [Slug.COMMAND_GIVEN_UP]


@pytest.mark.parametrize(
    ("domain", "reason"),
    [("user", Slug.INVALID), ("external", Slug.COMMAND_GIVEN_UP), ("internal", Slug.INTERNAL)],
)
def test_what_its_driver_failed_of_the_command_failed_of(
    world: World, domain: Literal["user", "external", "internal"], reason: Slug
) -> None:
    runner = runner_in(world)
    carry_out(runner, command(1), 1)
    error = LifecycleError(domain=domain, message="x", hint="", stage=None, retryable=False)
    receive(runner, 1, DriverFailed(problems=(), error=error), DriverEnded(exit_code=1))
    assert (world.answers, world.reasons) == ([("c1", "failed")], [reason])


def test_what_is_done_has_no_reason(world: World) -> None:
    running(world)
    assert (world.answers, world.reasons) == ([("c1", "done")], [None])
