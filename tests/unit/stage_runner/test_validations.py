"""What is only to be checked: it is answered with what was found, and nothing else happens."""

import json
from dataclasses import replace
from typing import Any

import pytest

from builders import applied
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
from waybill_shared.contract.commands import Apply, Validate
from waybill_shared.contract.errors import Problem, Retryable
from waybill_shared.contract.events import Command
from waybill_shared.contract.manifest.reading import read_manifest
from waybill_shared.contract.problems import Slug
from waybill_stage_runner.app.admission import VALIDATIONS_MAX, Admission
from waybill_stage_runner.app.ports import Checked
from waybill_stage_runner.app.runner import Runner
from waybill_stage_runner.core.pipelines.validation_result import RESULT_BYTES_MAX
from waybill_stage_runner.core.pool.model import CheckFailure

COLUMNS = {"enrich": {"enriched_topic": "`order_id` bigint, `tax` decimal(13,3)"}}
WRONG = Problem(message="no view is called `ordrs`", line=15, column=60, path="stages.0", hint="h")


def validation(number: int, manifest: str = EXAMPLE, *, about: str | None = None) -> Command:
    body = Validate(manifest=applied(manifest), about=about)
    asked = command(number)
    return replace(asked, id=f"v{number}", pipeline_uid=f"{number:032x}", body=body)


def ask(runner: Runner, asked: Command, offset: int = 1) -> None:
    runner.handle(asked, offset)
    runner.act()


def find(runner: Runner, asked: Command, **found: object) -> None:
    runner.finish_check(Checked(check_id=asked.id, **found))  # type: ignore[arg-type]
    runner.act()


def two_runners(world: World) -> tuple[Runner, Runner]:
    """Of one process."""
    shared = Admission()
    one = Runner(world, world, world, world, admission=shared)
    return one, Runner(world, world, world, world, admission=shared)


def told(world: World) -> dict[str, Any]:
    result = world.results[-1]
    assert result is not None
    found: dict[str, Any] = json.loads(result)
    return found


def test_a_good_manifest_is_answered_with_its_graph_and_columns(world: World) -> None:
    runner = runner_in(world)
    ask(runner, validation(1))
    assert (world.only_checked, runner.open_commands(), world.answers) == (["v1"], {"v1"}, [])

    find(runner, validation(1), columns=COLUMNS)
    assert (world.answers, world.generations) == ([("v1", "done")], [None])
    found = told(world)
    assert found["errors"] == []
    assert found["warnings"] == list(read_manifest(EXAMPLE).warnings)
    nodes = {node["id"]: node for node in found["graph"]["nodes"]}
    assert list(nodes) == [
        "input/orders",
        "stage/enrich",
        "sink/enriched_topic",
        "stage/load",
        "sink/lake",
    ]
    assert nodes["stage/enrich"]["columns"] == COLUMNS["enrich"]
    assert "columns" not in nodes["input/orders"]
    assert {"from": "sink/enriched_topic", "to": "stage/load"} in found["graph"]["edges"]
    assert runner.open_commands() == set()


def test_nothing_else_happens(world: World) -> None:
    runner = runner_in(world)
    ask(runner, validation(1))
    find(runner, validation(1))
    runner.tick()
    runner.beat()
    runner.act()
    assert (world.records, world.definitions, world.topics) == ([], [], {})
    assert (world.phases, world.beats, world.claims, world.started) == ([], [], 0, [])
    assert runner.next_ready() is None
    assert list(runner.states) == []


def test_what_was_found_is_the_result_of_a_check_that_was_made(world: World) -> None:
    runner = runner_in(world)
    ask(runner, validation(1))
    find(runner, validation(1), problems=(WRONG, replace(WRONG, line=20)), columns=COLUMNS)
    assert (world.answers, world.reasons) == ([("v1", "done")], [None])
    assert [(e["line"], e["column"], e["hint"]) for e in told(world)["errors"]] == [
        (15, 60, "h"),
        (20, 60, "h"),
    ]
    assert told(world)["graph"] is not None


def test_a_manifest_that_came_as_an_object_has_no_places() -> None:
    found = Problem(message="wrong", path="stages.load.sinks")
    (problem,) = applied(EXAMPLE).without_places().place([found])
    assert (problem.line, problem.column, problem.path) == (None, None, "stages.1.sinks")


def test_what_ingress_knows_of_other_pipelines_is_a_warning(world: World) -> None:
    noted = applied(EXAMPLE).with_warnings(["sink lake: shared"])
    asked = replace(validation(1), body=Validate(manifest=noted))
    runner = runner_in(world)
    ask(runner, asked)
    find(runner, asked)
    assert told(world)["warnings"][-1] == "sink lake: shared"

    carry_out(runner, replace(command(2), body=Apply(manifest=noted)), 2)
    assert world.warnings[-1][-1] == "sink lake: shared"


def comparison(number: int, manifest: str, tenant: str = "default") -> Command:
    asked = validation(number, manifest, about=UID)
    return replace(asked, tenant=tenant)


def compared(runner: Runner, asked: Command, **found: object) -> None:
    ask(runner, asked, 2)
    find(runner, asked, **found)
    freed = runner.next_ready()
    assert freed is not None
    ask(runner, freed[1], freed[0])


def test_what_would_change_of_a_pipeline_is_told_and_nothing_is_done(world: World) -> None:
    runner = running(world)
    before = (list(world.records), list(world.started), list(world.stopped), dict(world.topics))
    now = EXAMPLE.replace("0.2", "0.3")
    was = {"enrich": {"enriched_topic": "`tax` decimal(12,3)"}}
    compared(runner, comparison(2, now), columns=COLUMNS, columns_before=was)
    assert world.compared == [None, applied(EXAMPLE)]
    changes = told(world)["changes"]
    assert [(each["kind"], each["effect"]) for each in changes] == [
        ("change_stage", ""),
        ("change_columns", ""),
        ("change_columns", ""),
    ]
    assert "column tax is decimal(13,3), was decimal(12,3)" in changes[2]["message"]
    assert runner.open_commands() == set()
    assert runner.next_ready() is None
    after = (list(world.records), list(world.started), list(world.stopped), dict(world.topics))
    assert after == before


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ("name: orders\n", "name: sales\nwas: orders\n", "rename_pipeline"),
        ("- name: load\n", "- name: store\n    was: load\n", "rename_stage"),
        ("{name: lake,", "{name: pond, was: lake,", "rename_sink"),
    ],
)
def test_other_names_are_compared_with_those_of_before(
    world: World, old: str, new: str, kind: str
) -> None:
    runner = running(world)
    compared(runner, comparison(2, EXAMPLE.replace(old, new, 1)))
    answer = told(world)
    assert answer["errors"] == []
    assert kind in [each["kind"] for each in answer["changes"]]


def test_name_before_of_a_new_pipeline_is_an_error(world: World) -> None:
    asked = validation(1, EXAMPLE.replace("- name: load\n", "- name: store\n    was: load\n"))
    runner = runner_in(world)
    ask(runner, asked)
    find(runner, asked)
    (error,) = told(world)["errors"]
    assert "no stage was ever called 'load'" in error["message"]
    assert error["path"] == "stages.1.was"


def test_what_apply_would_refuse_is_an_error_with_its_place(world: World) -> None:
    runner = running(world)
    compared(runner, comparison(2, EXAMPLE.replace("topic: orders.in", "topic: other.in")))
    (error,) = told(world)["errors"]
    assert error["message"].startswith("plan_incompatible: stage enrich read orders.in")
    assert error["line"] == 1 + EXAMPLE[: EXAMPLE.index("inputs: [orders]")].count("\n")
    assert told(world)["changes"] is None
    assert world.topics.keys() == {"orders.in", "orders.enriched"}


@pytest.mark.parametrize(
    ("now", "changes"), [(EXAMPLE, []), (EXAMPLE + "# a remark\n", ["change_text"])]
)
def test_where_nothing_differs_nothing_would_change(
    world: World, now: str, changes: list[str]
) -> None:
    runner = running(world)
    compared(runner, comparison(2, now))
    assert [each["kind"] for each in told(world)["changes"]] == changes


def test_a_pipeline_of_another_tenant_or_runner_is_not_compared(world: World) -> None:
    compared(running(world), comparison(2, EXAMPLE, tenant="other"))
    assert told(world)["changes"] is None
    compared(runner_in(world), comparison(3, EXAMPLE))
    assert told(world)["changes"] is None
    assert world.compared[1:] == [None, None]


def test_a_comparison_waits_for_kafka(world: World) -> None:
    runner, asked = running(world), comparison(2, EXAMPLE)
    ask(runner, asked, 2)
    find(runner, asked)
    world.away = True
    for _ in range(2):
        freed = runner.next_ready()
        assert freed is not None
        with pytest.raises(Retryable):
            runner.handle(freed[1], freed[0])
    assert runner.open_commands() == {"v2"}
    world.away = False
    ask(runner, asked, 2)
    assert told(world)["changes"] == []
    assert runner.open_commands() == set()


def test_a_pipeline_and_what_is_checked_do_not_wait_for_each_other(world: World) -> None:
    runner = running(world)
    change = command(2, manifest=EXAMPLE.replace("0.2", "0.3"))
    ask(runner, validation(3), 2)
    runner.handle(change, 3)
    ask(runner, validation(4), 4)
    assert (world.checks, world.only_checked) == (["c1", "v3", "c2", "v4"], ["v3", "v4"])

    find(runner, validation(4))
    assert world.answers[-1] == ("v4", "done")
    pass_check(runner, change)
    runner.act()
    assert world.stopped, "the change goes on while a validation is still waiting"
    assert "v3" in runner.open_commands()


def test_a_runner_that_starts_anew_checks_again_what_it_has_not_answered(world: World) -> None:
    first = runner_in(world)
    ask(first, validation(1))
    first.release()
    assert world.checks == []

    assert world.answers == []
    second = runner_in(world)
    second.adopt_answered(["v0"])
    ask(second, validation(0), 0)
    ask(second, validation(1), 1)
    assert world.checks == ["v1"], "v0 was answered"
    find(second, validation(1))
    assert world.answers == [("v1", "done")]


def test_what_comes_when_too_many_wait_is_refused_at_once(world: World) -> None:
    """All runners of a process count: they share the drivers."""
    one, other = two_runners(world)
    for number in range(VALIDATIONS_MAX):
        ask(one if number % 2 else other, validation(number))
    assert world.answers == []

    late = validation(VALIDATIONS_MAX)
    ask(one, late)
    assert (world.answers, world.reasons) == ([(late.id, "failed")], ["too_many_checks"])
    assert late.id not in world.checks

    find(other, validation(0))
    ask(one, late)
    assert late.id in world.checks
    one.release()
    for number in range(100, 100 + VALIDATIONS_MAX // 2):
        ask(other, validation(number))
    assert world.reasons.count(Slug.TOO_MANY_CHECKS) == 1, "a runner that goes leaves its room"


@pytest.mark.parametrize(
    ("why", "slug"),
    [("deadline", "invalid"), ("driver_exited", "internal"), ("not_started", "internal")],
)
def test_a_check_that_did_not_end_says_so(world: World, why: CheckFailure, slug: str) -> None:
    runner, other = two_runners(world)
    ask(runner, validation(1))
    find(runner, validation(1), failed=why)
    assert (world.answers, world.reasons) == ([("v1", "failed")], [slug])
    assert world.results == [None]

    ask(other, validation(2))
    assert ("v2" in world.checks) == (why != "deadline"), "what was too slow is not tried again"


@pytest.mark.parametrize("errors", [0, 3])
def test_what_is_too_long_goes_without_columns(world: World, errors: int) -> None:
    runner = runner_in(world)
    ask(runner, validation(1))
    long = {"enrich": {"enriched_topic": "ü" * (RESULT_BYTES_MAX // 2)}}
    find(runner, validation(1), columns=long, problems=(WRONG,) * errors)
    assert len(told(world)["errors"]) == errors
    assert all("columns" not in node for node in told(world)["graph"]["nodes"])


def test_errors_that_are_too_long_are_fewer_but_never_none(world: World) -> None:
    runner = runner_in(world)
    ask(runner, validation(1))
    many = (replace(WRONG, hint="h" * 1_000),) * 1_000
    find(runner, validation(1), problems=many)
    assert len(world.results[-1] or "") <= RESULT_BYTES_MAX
    assert len(told(world)["errors"]) > 100


def test_a_change_that_was_checked_has_no_result(world: World) -> None:
    carry_out(runner_in(world), command(1, manifest="name: orders"), 1)
    assert world.results == [None]
