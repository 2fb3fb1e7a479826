"""A pipeline that is called otherwise, and names that are reserved for one."""

from dataclasses import replace

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
    stopped,
)
from waybill_shared.contract.commands import Apply, Rename
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.events import Command, PipelineRecord
from waybill_shared.contract.lifecycle import Phase
from waybill_shared.contract.lifecycle_events import LifecycleError
from waybill_shared.contract.problems import Slug
from waybill_stage_runner.app.runner import Runner
from waybill_stage_runner.core.pipelines.events import DriverEnded, DriverFailed, DriverRuns

ERROR = LifecycleError(
    domain="user", message="the table is not ours", hint="", stage=None, retryable=False
)


def rename(number: int, name: str = "sales", reserved_in: int | None = 1) -> Command:
    return replace(command(number, "rename"), body=Rename(name=name, reserved_in=reserved_in))


def apply(number: int, manifest: str, reserved_in: int | None = None) -> Command:
    sent = command(number, manifest=manifest)
    assert isinstance(sent.body, Apply)
    return replace(sent, body=replace(sent.body, reserved_in=reserved_in))


def reserve(number: int, reserved_for: str = "another uid", reserved_in: int = 1) -> Command:
    body = Rename(name="orders", reserved_for=reserved_for, reserved_in=reserved_in)
    return replace(command(number, "rename"), body=body)


def manifest_of(name: str, was: str | None = None) -> str:
    line = f"name: {name}\n" if was is None else f"name: {name}\nwas: {was}\n"
    return EXAMPLE.replace("name: orders\n", line, 1)


def of(world: World) -> PipelineRecord:
    return world.records[-1]


def last(world: World) -> tuple[tuple[str, str], Slug | None]:
    return world.answers[-1], world.reasons[-1]


# --- another name, by a command


def test_pipeline_goes_on_under_the_other_name_in_the_next_run(world: World) -> None:
    runner = running(world)
    before = of(world)
    carry_out(runner, rename(2), 2)
    receive(runner, 1, DriverEnded(exit_code=0))
    receive(runner, 2, DriverRuns())
    after = of(world)
    assert (after.name, after.was, after.generation) == ("sales", ("orders",), 2)
    assert (after.pipeline_uid, after.stages) == (before.pipeline_uid, before.stages)
    assert after.manifest.source == manifest_of("sales")
    assert [each.manifest.source for each in after.earlier] == [EXAMPLE]
    assert (world.definitions[-1].name, world.definitions[-1].was) == ("sales", ("orders",))
    assert world.specs[-1].name == "sales"
    assert last(world) == (("c2", "done"), None)


def test_stopped_pipeline_stays_so(world: World) -> None:
    runner = stopped(world)
    carry_out(runner, rename(3), 3)
    assert (of(world).name, of(world).desired) == ("sales", "stopped")
    assert (world.started, last(world)) == ([1], (("c3", "done"), None))


def test_failed_pipeline_stays_so(world: World) -> None:
    runner = running(world)
    receive(runner, 1, DriverFailed(problems=(), error=ERROR), DriverEnded(exit_code=1))
    assert world.phases[-1] == Phase.FAILED
    carry_out(runner, rename(2), 2)
    assert (of(world).name, world.phases[-1], world.started) == ("sales", Phase.FAILED, [1])
    assert last(world) == (("c2", "done"), None)


def test_name_that_it_has_changes_nothing(world: World) -> None:
    runner = running(world)
    carry_out(runner, rename(2), 2)
    receive(runner, 1, DriverEnded(exit_code=0))
    receive(runner, 2, DriverRuns())
    before = of(world)
    carry_out(runner, rename(3), 3)
    assert of(world) == replace(before, commanded_at=3, run=2)
    assert (world.started, last(world)) == ([1, 2], (("c3", "done"), None))


def test_first_name_comes_back_and_keys_stay(world: World) -> None:
    runner = stopped(world)
    for number, name, reserved in ((3, "sales", 1), (4, "trade", 2), (5, "orders", None)):
        carry_out(runner, rename(number, name, reserved), number)
    assert (of(world).name, of(world).was) == ("orders", ("orders", "sales", "trade"))
    carry_out(runner, rename(6, "sales", None), 6)
    assert (of(world).name, of(world).was) == ("sales", ("orders", "trade"))


def test_command_that_is_read_again_renames_once(world: World) -> None:
    runner = stopped(world)
    carry_out(runner, rename(3), 3)
    later = runner_in(world)
    later.adopt(of(world))
    carry_out(later, rename(3), 3)
    assert (of(world).generation, last(world)) == (2, (("c3", "done"), None))


def test_change_that_is_sent_after_the_rename_counts_for_the_other_name(world: World) -> None:
    runner = stopped(world)
    carry_out(runner, rename(3), 3)
    text = manifest_of("sales").replace("1 second", "2 seconds")
    carry_out(runner, command(4, manifest=text), 4)
    assert (of(world).name, of(world).generation) == ("sales", 3)


# --- another name, by the manifest


@pytest.fixture
def at_rest(world: World) -> Runner:
    return stopped(world)


def test_was_in_a_manifest_renames_in_the_same_generation(world: World, at_rest: Runner) -> None:
    text = manifest_of("sales", "orders").replace("1 second", "2 seconds")
    carry_out(at_rest, apply(3, text, 1), 3)
    assert (of(world).name, of(world).was, of(world).generation) == ("sales", ("orders",), 2)
    carry_out(at_rest, command(4, manifest=text), 4)
    assert of(world).generation == 2, "`was` may stay in the file"


@pytest.mark.parametrize(
    ("name", "was", "message", "hint"),
    [
        ("orders", None, "pipeline 'orders' is called 'sales' now", "`was: sales`"),
        ("trade", "orders", "pipeline 'orders' is called 'sales' now", "`was: sales`"),
        ("trade", None, "pipeline 'trade' is called 'sales' now", "write `name: sales`"),
        ("sales", "shop", "pipeline 'sales' was never called 'shop'", "take `was` out"),
    ],
)
def test_other_names_after_a_rename_are_refused(
    world: World, at_rest: Runner, name: str, was: str | None, message: str, hint: str
) -> None:
    carry_out(at_rest, rename(3), 3)
    carry_out(at_rest, command(4, manifest=manifest_of(name, was)), 4)
    assert last(world) == (("c4", "failed"), Slug.PLAN_INCOMPATIBLE)
    assert world.problems[-1].message == message
    assert hint in (world.problems[-1].hint or "")
    assert world.problems[-1].line is not None
    assert of(world).generation == 2


@pytest.mark.parametrize("by_manifest", [False, True])
def test_name_that_was_reserved_for_an_earlier_generation_is_not_given(
    world: World, at_rest: Runner, by_manifest: bool
) -> None:
    carry_out(at_rest, command(3, manifest=EXAMPLE.replace("1 second", "2 seconds")), 3)
    for number, reserved in ((4, 1), (5, None), (6, 3)):
        text = manifest_of("sales", "orders")
        sent = apply(number, text, reserved) if by_manifest else rename(number, "sales", reserved)
        carry_out(at_rest, sent, number)
        assert last(world) == ((f"c{number}", "failed"), Slug.SUPERSEDED)
        assert world.problems[-1].message == "orders was changed before it could be called 'sales'"
    assert (of(world).name, of(world).generation) == ("orders", 2)
    carry_out(at_rest, rename(7, "sales", 2), 7)
    assert (of(world).name, of(world).generation) == ("sales", 3)


def test_new_pipeline_was_never_called_otherwise(world: World) -> None:
    carry_out(runner_in(world), command(1, manifest=manifest_of("orders", "shop")), 1)
    assert last(world) == (("c1", "failed"), Slug.PLAN_INCOMPATIBLE)
    assert world.problems[-1].message == "pipeline 'orders' was never called 'shop'"


# --- names that are reserved


def test_reserved_name_is_a_life_without_a_driver(world: World) -> None:
    runner = runner_in(world)
    carry_out(runner, reserve(1), 1)
    record = of(world)
    assert (record.name, record.reserved_for, record.stages) == ("orders", "another uid", ())
    assert (record.desired, record.closed) == ("deleted", True)
    assert last(world) == (("c1", "done"), None)
    runner.tick()
    runner.act()
    runner.beat()
    assert (world.started, world.closing, world.definitions, world.beats) == ([], [], [], [])


@pytest.mark.parametrize("after_restart", [False, True])
def test_name_is_reserved_for_the_first_one_only(world: World, after_restart: bool) -> None:
    runner = runner_in(world)
    carry_out(runner, reserve(1), 1)
    if after_restart:
        runner = runner_in(world)
        runner.adopt(of(world))
    carry_out(runner, reserve(2), 2)
    assert last(world) == (("c2", "done"), None), "the same rename goes on"
    carry_out(runner, reserve(3, "a third uid"), 3)
    assert last(world) == (("c3", "failed"), Slug.NAME_IN_USE)
    carry_out(runner, reserve(4, reserved_in=2), 4)
    assert last(world) == (("c4", "failed"), Slug.NAME_IN_USE), "it begins its next life"
    carry_out(runner, command(5), 5)
    assert last(world) == (("c5", "failed"), Slug.NAME_IN_USE)
    assert (len(world.records), of(world).reserved_for) == (1, "another uid")
    assert world.checks == [], "nothing is compiled for a name that is reserved"


def test_name_of_a_pipeline_is_not_reserved(world: World) -> None:
    runner = running(world)
    carry_out(runner, reserve(2), 2)
    assert last(world) == (("c2", "failed"), Slug.NAME_IN_USE)
    assert of(world).reserved_for == ""


def test_name_is_not_reserved_while_a_pipeline_may_begin_with_it(world: World) -> None:
    runner = runner_in(world)
    apply = command(1)
    runner.handle(apply, 1)
    runner.handle(reserve(2), 2)
    runner.act()
    assert world.answers == [], "the manifest is being checked"
    pass_check(runner, apply)
    while (freed := runner.next_ready()) is not None:
        runner.handle(freed[1], freed[0])
    runner.act()
    assert last(world) == (("c2", "failed"), Slug.NAME_IN_USE)
    assert of(world).desired == "running"


def test_life_that_is_over_is_not_reserved(world: World) -> None:
    runner = stopped(world)
    carry_out(runner, command(3, "delete"), 3)
    receive(runner, 2, DriverEnded(exit_code=0))
    carry_out(runner, reserve(4), 4)
    assert last(world) == (("c4", "failed"), Slug.PIPELINE_GONE)


def test_reserving_that_kafka_does_not_accept_is_written_later(world: World) -> None:
    runner = runner_in(world)
    world.mute = True
    runner.handle(reserve(1), 1)
    with pytest.raises(Retryable):
        runner.act()
    assert (world.records, world.answers, runner.busy) == ([], [], True)
    world.mute = False
    runner.act()
    assert (of(world).reserved_for, last(world)) == ("another uid", (("c1", "done"), None))


def test_reserving_that_is_read_again_is_answered_again(world: World) -> None:
    carry_out(runner_in(world), reserve(1), 1)
    later = runner_in(world)
    later.adopt(of(world))
    carry_out(later, reserve(1), 1)
    assert (len(world.records), last(world)) == (1, (("c1", "done"), None))
