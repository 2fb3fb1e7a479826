"""`startingOffsets` of an input is a time: it becomes offsets once, and these are written down."""

from dataclasses import replace

import pytest

from builders import applied
from unit.stage_runner.fakes import EXAMPLE, STARTS, World, carry_out, command, runner_in
from waybill_shared.contract.commands import Restart, Validate
from waybill_stage_runner.core.pipelines.planning import TopicState, start_at

INPUT = "  - name: orders\n"
FUTURE = EXAMPLE.replace(INPUT, f'{INPUT}    startingOffsets: "2026-11-01T00:00:00Z"\n', 1)
LINE = FUTURE.splitlines().index('    startingOffsets: "2026-11-01T00:00:00Z"') + 1
AGO = FUTURE.replace('"2026-11-01T00:00:00Z"', "1 hour ago")
HOUR_MS = 3_600_000


def bases(world: World) -> set[int]:
    source = world.records[-1].stages[0].inputs[0]
    assert source.root
    return set(source.bases.values())


def test_a_time_ago_becomes_offsets_when_it_is_applied(world: World) -> None:
    """Offset n is the first that is not older than n ms."""
    world.now = HOUR_MS + 50
    carry_out(runner_in(world), command(1, manifest=AGO), 1)
    assert bases(world) == {50}


def test_it_is_not_asked_for_again(world: World) -> None:
    world.now = HOUR_MS + 50
    runner = runner_in(world)
    carry_out(runner, command(1, manifest=AGO), 1)
    world.now += 20
    changed = AGO.replace("version: 1", "version: 1\nparallelism: 2", 1)
    carry_out(runner, command(2, manifest=changed), 2)
    assert world.answers[0] != ("c2", "failed")
    assert world.records[-1].generation == 2
    carry_out(runner, command(3, "restart"), 3)
    assert bases(world) == {50}


def test_a_fresh_restart_goes_back_there_and_says_how_far_that_is(world: World) -> None:
    """To where the stage began, not to what `1 hour ago` means by now."""
    world.now = HOUR_MS + 50
    runner = runner_in(world)
    carry_out(runner, command(1, manifest=AGO), 1)
    world.now += 20
    body = Restart(start_from="fresh")
    carry_out(runner, replace(command(2, "restart"), body=body), 2)
    assert world.problems[0].message == (
        "stage enrich reads up to 40 records of orders.in[0] again, from offset 50"
    )
    assert len(world.problems) == len(world.records[-1].stages[0].inputs[0].bases), "none is lost"
    carry_out(runner, replace(command(3, "restart"), body=replace(body, confirmed=True)), 3)
    (rewind,) = world.records[-1].rewinds
    assert (rewind.stage, set(rewind.starts.values())) == ("enrich", {50})


def test_it_is_never_below_what_the_topic_holds_nor_beyond_its_end(world: World) -> None:
    world.now = HOUR_MS
    carry_out(runner_in(world), command(1, manifest=AGO), 1)
    assert bases(world) == {STARTS["earliest"]}
    state = TopicState(topic_id="T", starts={0: 3, 1: 3, 2: 3}, ends={0: 90, 1: 90, 2: 90})
    assert start_at(state, {0: 1, 1: 40}).starts == {0: 3, 1: 40, 2: 90}


def test_a_time_in_the_future_is_refused_at_its_line(world: World) -> None:
    carry_out(runner_in(world), command(1, manifest=FUTURE), 1)
    assert world.answers[-1] == ("c1", "failed")
    (problem,) = world.problems
    assert problem.message == "2026-11-01T00:00:00.000Z is in the future"
    assert problem.line == LINE
    assert "now it is 1970-01-01T00:00:01.000Z" in problem.hint
    assert world.records == []
    assert world.topics == {}


@pytest.mark.parametrize(("manifest", "errors"), [(FUTURE, 1), (AGO, 0)])
def test_a_check_finds_it_too(world: World, manifest: str, errors: int) -> None:
    asked = replace(command(1), body=Validate(manifest=applied(manifest)))
    carry_out(runner_in(world), asked, 1)
    assert str(world.results[-1]).count("is in the future") == errors
