"""A record that a person puts into its dead-letter topic: noted, and done by the next run."""

from dataclasses import replace

import pytest

from unit.stage_runner.fakes import UID, World, carry_out, command, receive, running, stopped
from waybill_shared.contract.commands import PutDeadLetter, Restart, StopMode
from waybill_shared.contract.errors import Problem
from waybill_shared.contract.events import Command
from waybill_stage_runner.app.runner import Runner
from waybill_stage_runner.core.pipelines.events import DriverEnded, DriverPaused, DriverRuns
from waybill_stage_runner.core.pipelines.putting import REQUESTS_MAX


def asks(
    number: int,
    offset: int = 40,
    *,
    topic: str = "orders.in",
    partition: int = 0,
    stage: str | None = None,
) -> Command:
    record = PutDeadLetter(topic=topic, partition=partition, offset=offset, reason="ends it")
    body = Restart(mode=StopMode.FORCE, stage=stage, dead_letter=record)
    return replace(command(number, "restart"), body=body)


def ask(world: World, asked: Command) -> Runner:
    runner = running(world)
    carry_out(runner, asked, 2)
    return runner


def next_run(runner: Runner, epoch: int, *reports: DriverRuns | DriverPaused) -> None:
    """The driver before ends, and the next one makes these reports."""
    receive(runner, epoch, DriverEnded(exit_code=137))
    receive(runner, epoch + 1, *reports)


def test_the_next_run_gets_the_request_and_the_driver_is_killed(world: World) -> None:
    ask(world, asks(2))
    (request,) = world.records[-1].dead_letters
    assert str(request) == "orders.in[0]@40"
    assert (request.command, request.topic_id, request.stage) == ("c2", "orders.in#1", None)
    assert request.message == f"ends it (put by {command(2, 'restart').actor})"
    assert world.stopped == [UID]
    assert world.records[-1].generation == 1
    assert world.answers == [("c1", "done")]


def test_it_is_answered_when_the_driver_has_done_it_and_then_forgotten(world: World) -> None:
    runner = ask(world, asks(2))
    next_run(runner, 1, DriverRuns())
    assert world.answers[-1] == ("c2", "done")
    carry_out(runner, command(3, "stop"), 3)
    assert world.records[-1].dead_letters == ()


def test_what_the_driver_could_not_do_fails(world: World) -> None:
    runner = ask(world, asks(2))
    next_run(runner, 1, DriverRuns(not_put={"c2": Problem(message="processed already")}))
    assert world.answers[-1] == ("c2", "failed")
    assert [problem.message for problem in world.problems] == ["processed already"]


def test_a_report_that_is_repeated_answers_once(world: World) -> None:
    runner = running(world)
    carry_out(runner, command(2, "pause"), 2)
    receive(runner, 1, DriverPaused(order=1))
    carry_out(runner, asks(3), 3)
    receive(runner, 1, DriverEnded(exit_code=137))
    not_put = {"c3": Problem(message="processed already")}
    receive(runner, 2, DriverPaused(order=0, not_put=not_put))
    receive(runner, 2, DriverPaused(order=0, not_put=not_put))
    assert [answer for answer in world.answers if answer[0] == "c3"] == [("c3", "failed")]


def test_a_second_request_supersedes_none(world: World) -> None:
    """Each has its own answer."""
    runner = ask(world, asks(2))
    carry_out(runner, asks(3, 41), 3)
    assert [request.offset for request in world.records[-1].dead_letters] == [40, 41]
    next_run(runner, 1, DriverRuns(not_put={"c3": Problem(message="processed already")}))
    assert world.answers[1:] == [("c3", "failed"), ("c2", "done")]


def test_a_stop_supersedes_it_and_says_that_it_stays_noted(world: World) -> None:
    runner = ask(world, asks(2))
    carry_out(runner, command(3, "stop"), 3)
    assert ("c2", "failed") in world.answers
    assert "the next start puts the record there" in world.problems[0].hint
    assert world.records[-1].dead_letters


def test_a_stopped_pipeline_stays_stopped_and_does_it_at_its_start(world: World) -> None:
    runner = stopped(world)
    carry_out(runner, asks(3), 3)
    assert world.answers[-1] == ("c3", "done")
    assert world.records[-1].desired == "stopped"
    carry_out(runner, command(4, "start"), 4)
    assert world.records[-1].dead_letters


def test_a_paused_pipeline_stays_paused(world: World) -> None:
    runner = running(world)
    carry_out(runner, command(2, "pause"), 2)
    receive(runner, 1, DriverPaused(order=1))
    carry_out(runner, asks(3), 3)
    assert world.records[-1].desired == "paused"
    next_run(runner, 1, DriverPaused(order=0))
    assert world.answers[-1] == ("c3", "done")


@pytest.mark.parametrize(
    ("asked", "message", "hint"),
    [
        (asks(2, topic="other"), "does not read topic other", "orders.in"),
        (asks(2, stage="nothing"), "has no stage nothing", "enrich"),
        (asks(2, stage="load"), "stage load does not read topic orders.in", "orders.enriched"),
        (asks(2, partition=9), "topic orders.in has no partition 9", "it has 4"),
        (asks(2, 90), "orders.in[0]@90: the topic holds 3 to 90", "3 to 89"),
        (asks(2, 2), "orders.in[0]@2: the topic holds 3 to 90", "3 to 89"),
    ],
)
def test_what_no_run_could_do_is_refused(
    world: World, asked: Command, message: str, hint: str
) -> None:
    ask(world, asked)
    assert world.answers[-1] == ("c2", "failed")
    (problem,) = world.problems
    assert message in problem.message
    assert hint in problem.hint
    assert (len(world.records), world.stopped) == (1, [])


REPLAYS = "waybill.replays"


def test_a_replay_that_ends_the_driver_is_put_by_its_position(world: World) -> None:
    ask(world, asks(2, topic=REPLAYS, partition=3))
    (request,) = world.records[-1].dead_letters
    assert str(request) == "waybill.replays[3]@40"
    assert (request.topic_id, request.stage) == ("replays#1", None)
    assert world.stopped == [UID]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (asks(2, topic=REPLAYS, partition=9), "topic waybill.replays has no partition 9"),
        (asks(2, 90, topic=REPLAYS, partition=3), "the topic holds 3 to 90"),
        (asks(2, topic=REPLAYS, partition=3, stage="nothing"), "has no stage nothing"),
    ],
)
def test_a_replay_that_is_not_there_is_refused(world: World, asked: Command, message: str) -> None:
    ask(world, asked)
    assert message in world.problems[0].message
    assert (len(world.records), world.stopped) == (1, [])


def test_a_topic_that_was_created_again_is_refused(world: World) -> None:
    runner = running(world)
    world.topics = {"orders.in": "orders.in#2", "orders.enriched": "orders.enriched#1"}
    carry_out(runner, asks(2), 2)
    assert "created again" in world.problems[0].message


def test_no_more_wait_than_the_record_has_room_for(world: World) -> None:
    runner = stopped(world)
    for number in range(3, REQUESTS_MAX + 4):
        carry_out(runner, asks(number, 10), number)
    assert world.answers[-1] == (f"c{REQUESTS_MAX + 3}", "failed")
    assert len(world.records[-1].dead_letters) == REQUESTS_MAX
