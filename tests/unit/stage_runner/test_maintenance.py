"""A table that somebody wants kept in order: done beside all else, and told in numbers."""

import json
from dataclasses import replace

import pytest

from builders import applied
from unit.stage_runner.fakes import EXAMPLE, UID, World, command, runner_in, running
from waybill_shared.contract.commands import Maintain
from waybill_shared.contract.driver_news import TableMaintenance
from waybill_shared.contract.errors import Problem
from waybill_shared.contract.events import Command
from waybill_shared.contract.problems import Slug
from waybill_stage_runner.app.ports import Checked
from waybill_stage_runner.app.runner import Runner
from waybill_stage_runner.core.pipelines.maintenance import maintenance_reports
from waybill_stage_runner.core.pool.model import CheckFailure

KEPT = EXAMPLE.replace(
    "table: raw.orders,", "table: raw.orders, maintenance: {compact: {}, removeOrphans: {}},"
)
WRONG = Problem(message="there is no table raw.orders yet", hint="")


@pytest.fixture
def runner(world: World) -> Runner:
    assert KEPT != EXAMPLE
    return running(world, KEPT)


def maintenance(sink: str = "lake", *, dry_run: bool = False, uid: str = UID) -> Command:
    body = Maintain(about=uid, sink=sink, dry_run=dry_run)
    return replace(command(2, "start"), id="m2", pipeline_uid="f" * 32, body=body)


def ask(runner: Runner, asked: Command) -> None:
    runner.handle(asked, 2)
    runner.act()


def find(runner: Runner, **found: object) -> None:
    runner.finish_check(Checked(check_id="m2", **found))  # type: ignore[arg-type]
    runner.act()


@pytest.mark.parametrize("dry_run", [False, True])
def test_what_was_done_is_told_in_numbers(world: World, runner: Runner, dry_run: bool) -> None:
    ask(runner, maintenance(dry_run=dry_run))
    assert world.maintained == [(applied(KEPT), "lake", dry_run)]
    assert runner.open_commands() == {"m2"}

    done = {"compact": {"files": 12, "into": 1}, "removeOrphans": {"files": 0, "bytes": 0}}
    find(runner, tasks=done)
    assert world.answers[-1] == ("m2", "done")
    assert json.loads(world.results[-1] or "") == {
        "sink": "lake", "dry_run": dry_run, "tasks": done,
    }  # fmt: skip
    assert runner.open_commands() == set()


def test_each_task_that_had_something_to_do_is_an_event(world: World, runner: Runner) -> None:
    ask(runner, maintenance())
    done = {"compact": {"files": 12, "into": 1}, "removeOrphans": {"files": 0, "bytes": 0}}
    find(runner, tasks=done)
    assert world.kept == [
        TableMaintenance(stage="load", sink="lake", task="compact", done=done["compact"])
    ]


def test_what_would_be_done_is_no_event(world: World, runner: Runner) -> None:
    ask(runner, maintenance(dry_run=True))
    find(runner, tasks={"compact": {"files": 12, "into": 1}})
    assert world.kept == []


def test_what_a_deleted_pipeline_had_is_answered_all_the_same(world: World, runner: Runner) -> None:
    ask(runner, maintenance())
    runner.handle(command(3, "delete"), 3)
    runner.act()
    find(runner, tasks={"compact": {"files": 12, "into": 1}})
    assert world.answers[-1] == ("m2", "done")
    assert world.kept == []


def test_a_sink_that_was_removed_meanwhile_is_no_news(runner: Runner) -> None:
    (state,) = runner.states
    assert maintenance_reports(state.record, "removed", {"compact": {"files": 12, "into": 1}}) == ()


def test_no_other_command_waits_for_it(world: World, runner: Runner) -> None:
    ask(runner, maintenance())
    runner.handle(command(3, "stop"), 3)
    runner.act()
    assert world.records[-1].desired == "stopped"
    find(runner)
    assert world.answers[-1] == ("m2", "done")


@pytest.mark.parametrize(
    ("asked", "said", "slug"),
    [
        (maintenance("river"), "there is no sink river", Slug.INVALID),
        (maintenance("enriched_topic"), "which has no table to keep in order", Slug.INVALID),
        (maintenance(uid="gone"), "there is no pipeline orders any more", Slug.PIPELINE_GONE),
    ],
)
def test_what_cannot_be_done_is_refused_at_once(
    world: World, runner: Runner, asked: Command, said: str, slug: Slug
) -> None:
    ask(runner, asked)
    assert (world.answers[-1], world.reasons[-1]) == (("m2", "failed"), slug)
    assert said in world.problems[-1].message
    assert world.maintained == []


def test_a_manifest_that_names_no_task_is_told_how(world: World) -> None:
    runner = running(world)
    ask(runner, maintenance())
    assert "names no task" in world.problems[-1].message
    assert "maintenance: {compact: {}}" in world.problems[-1].hint


def test_what_the_driver_says_is_wrong_is_the_answer(world: World, runner: Runner) -> None:
    ask(runner, maintenance())
    find(runner, problems=(WRONG,))
    assert world.answers[-1] == ("m2", "failed")
    assert (world.problems[-1], world.reasons[-1]) == (WRONG, Slug.INVALID)


@pytest.mark.parametrize("failure", ["driver_exited", "not_started", "deadline"])
def test_one_that_was_not_done_to_its_end_is_nobodys_fault(
    world: World, runner: Runner, failure: CheckFailure
) -> None:
    ask(runner, maintenance())
    find(runner, failed=failure)
    assert (world.answers[-1], world.reasons[-1]) == (("m2", "failed"), Slug.INTERNAL)


def test_one_that_was_answered_is_not_done_again(world: World) -> None:
    runner = runner_in(world)
    runner.adopt_answered(["m2"])
    ask(runner, maintenance())
    assert (world.maintained, world.answers) == ([], [])
