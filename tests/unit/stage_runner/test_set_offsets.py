"""Where the next run of a pipeline begins: it is set while none goes on, and starts nothing."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from unit.stage_runner.fakes import World, carry_out, command, receive, running, stopped
from unit.stage_runner.test_rewinds import UPSERT, at
from unit.stage_runner.test_wanted_already import ERROR
from waybill_shared.contract.commands import Restart, SetOffsets
from waybill_shared.contract.lifecycle import Phase
from waybill_shared.contract.problems import Slug
from waybill_stage_runner.app.runner import Runner
from waybill_stage_runner.core.pipelines.events import (
    DriverEnded,
    DriverFailed,
    DriverFinished,
    DriverRuns,
)

HERE = SetOffsets(offsets=at((0, 40)), confirmed=True)


def failed(world: World) -> Runner:
    runner = running(world)
    receive(runner, 1, DriverFailed(problems=(), error=ERROR), DriverEnded(exit_code=1))
    return runner


def finished(world: World) -> Runner:
    runner = running(world)
    receive(runner, 1, DriverFinished(), DriverEnded(exit_code=0))
    return runner


def set_offsets(runner: Runner, body: SetOffsets, number: int = 3) -> None:
    carry_out(runner, replace(command(number, "set_offsets"), body=body), number)


@pytest.mark.parametrize("rests", [stopped, finished, failed])
def test_it_is_recorded_and_nothing_starts(world: World, rests: Callable[[World], Runner]) -> None:
    runner = rests(world)
    before, phase = world.records[-1], world.phases[-1]
    set_offsets(runner, HERE)
    assert world.answers[-1] == ("c3", "done")
    record = world.records[-1]
    (rewind,) = record.rewinds
    assert (rewind.stage, rewind.number, rewind.by) == ("enrich", 1, "ada")
    assert rewind.starts == {("orders.in#1", 0): 40}
    assert replace(record, rewinds=(), commanded_at=0, updated_at=0) == replace(
        before, rewinds=(), commanded_at=0, updated_at=0
    )
    assert (world.started, world.phases[-1]) == ([1], phase)


def test_the_next_start_gets_it(world: World) -> None:
    runner = stopped(world)
    set_offsets(runner, HERE)
    carry_out(runner, command(4, "start"), 4)
    assert world.specs[-1].rewinds[0].starts == {("orders.in#1", 0): 40}


def test_latest_is_where_the_topic_ends_now_and_a_time_becomes_offsets(world: World) -> None:
    runner = stopped(world)
    set_offsets(runner, SetOffsets(start_from="latest", confirmed=True))
    (latest,) = world.records[-1].rewinds
    assert (set(latest.starts.values()), latest.forward) == ({90}, True)
    set_offsets(runner, SetOffsets(at=50, confirmed=True), 4)
    (timed,) = world.records[-1].rewinds
    assert (set(timed.starts.values()), timed.number, timed.forward) == ({50}, 2, False)


@pytest.mark.parametrize("body", [HERE, SetOffsets()], ids=["set", "take back"])
def test_while_a_run_goes_on_it_is_refused(world: World, body: SetOffsets) -> None:
    runner = running(world)
    set_offsets(runner, body)
    assert world.reasons[-1] == Slug.NOT_ALLOWED_NOW
    assert world.problems[-1].message == "orders is Running: set_offsets is not possible now"
    assert world.problems[-1].hint.endswith("stop or delete it")
    assert (len(world.records), world.stopped) == (1, [])


def test_nothing_is_set_before_it_is_confirmed(world: World) -> None:
    set_offsets(stopped(world), replace(HERE, confirmed=False))
    assert world.reasons[-1] == Slug.REWIND_NOT_CONFIRMED
    assert [problem.message for problem in world.problems] == [
        "stage enrich reads up to 50 records of orders.in[0] again, from offset 40",
        "stage enrich skips what it has not read of orders.in[0] before offset 40",
    ]
    assert world.records[-1].rewinds == ()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (SetOffsets(offsets=at((0, 2))), "began at 3, what lies before is lost, before_start"),
        (SetOffsets(offsets=at((0, 91))), "orders.in[0]=91: the topic holds 3 to 90"),
        (SetOffsets(offsets=at((9, 5))), "topic orders.in has no partition 9"),
        (SetOffsets(start_from="earliest", stage="nope"), "orders has no stage nope"),
        (SetOffsets(at=2**45), "is in the future"),
    ],
    ids=["before its base", "beyond the end", "partition", "stage", "future"],
)
def test_what_no_restart_could_do_is_refused(world: World, body: SetOffsets, message: str) -> None:
    set_offsets(stopped(world), replace(body, confirmed=True))
    assert message in world.problems[0].message
    assert world.records[-1].rewinds == ()


def test_a_sink_that_each_batch_replaces_is_refused(world: World) -> None:
    runner = running(world, UPSERT.replace("mode: upsert, keys: [order_id]", "mode: overwrite"))
    carry_out(runner, command(2, "stop"), 2)
    receive(runner, 1, DriverEnded(exit_code=0))
    set_offsets(runner, SetOffsets(start_from="earliest", confirmed=True))
    assert "stage load: sink lake is replaced by each batch" in world.problems[0].message


def test_topics_that_were_created_again_come_first(world: World) -> None:
    runner = stopped(world)
    world.topics = {"orders.in": "orders.in#2"}
    set_offsets(runner, HERE)
    assert "created again, so no offset of before counts" in world.problems[0].message
    assert "waybill restart orders --from earliest" in world.problems[0].hint
    assert "orders.enriched" not in world.topics, "a refused change creates no topic"


def test_what_is_taken_back_is_forgotten_and_its_number_never_comes_again(world: World) -> None:
    """A sink may have done it already: it would take the next one for that."""
    runner = stopped(world)
    set_offsets(runner, HERE)
    set_offsets(runner, SetOffsets(), 4)
    assert world.answers[-1] == ("c4", "done")
    assert [each.starts for each in world.records[-1].rewinds] == [{}]
    assert world.phases[-1] is Phase.STOPPED
    set_offsets(runner, HERE, 5)
    assert [each.number for each in world.records[-1].rewinds] == [2]


def test_what_is_taken_back_is_known_of_each_stage(world: World) -> None:
    """A sink of it may have done it, and may still show older rows."""
    runner = stopped(world)
    set_offsets(runner, HERE)
    inner = at((0, 50), topic="orders.enriched")
    set_offsets(runner, SetOffsets(offsets=inner, stage="load", confirmed=True), 4)
    set_offsets(runner, SetOffsets(), 5)
    assert stages_of(world) == {("enrich", 1, 0), ("load", 2, 0)}
    set_offsets(runner, HERE, 6)
    assert stages_of(world) == {("enrich", 3, 1), ("load", 2, 0)}


def stages_of(world: World) -> set[tuple[str, int, int]]:
    """Stage, number, and how many partitions begin elsewhere."""
    return {(each.stage, each.number, len(each.starts)) for each in world.records[-1].rewinds}


def test_to_take_back_what_was_never_set_is_done(world: World) -> None:
    set_offsets(stopped(world), SetOffsets())
    assert (world.answers[-1], world.records[-1].rewinds) == (("c3", "done"), ())


def test_a_restart_that_failed_before_it_began_is_taken_back(world: World) -> None:
    runner = running(world)
    body = Restart(start_from="earliest", confirmed=True)
    carry_out(runner, replace(command(2, "restart"), body=body), 2)
    carry_out(runner, command(3, "stop"), 3)
    receive(runner, 1, DriverEnded(exit_code=0))
    set_offsets(runner, SetOffsets(), 4)
    carry_out(runner, command(5, "start"), 5)
    receive(runner, 2, DriverRuns())
    assert [each.starts for each in world.specs[-1].rewinds] == [{}]
