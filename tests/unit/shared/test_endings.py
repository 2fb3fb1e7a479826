"""The triggers of a manifest that end by themselves, and what is wrong with them."""

import json

import pytest

from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.contract.manifest.model import Manifest
from waybill_shared.contract.manifest.reading import read_manifest
from waybill_shared.contract.manifest.triggers import AvailableNow, Interval, Once

NOW, ONCE, NEVER = "{availableNow: true}", "{once: true}", "{processingTime: 5 seconds}"


def manifest(first: str = "", second: str = "", more: str = "") -> str:
    """Two stages with these triggers. A line of its own for each key: line 9 is the first one."""
    return f"""\
version: 1
name: orders
inputs:
  - name: orders
    kafka: {{topic: orders.in}}
    schema: "order_id BIGINT"
stages:
  - name: enrich
    {f"trigger: {first}" if first else "#"}
    {more or "#"}
    inputs: [orders]
    sinks: [{{name: inner, kafka: {{topic: orders.inner}}}}]
  - name: load
    {f"trigger: {second}" if second else "#"}
    inputs: [inner]
    sinks: [{{name: lake, iceberg: {{table: raw.orders}}}}]
"""


def read(text: str) -> Manifest:
    return read_manifest(text).model


def problems_of(text: str) -> tuple[Problem, ...]:
    with pytest.raises(UserError) as refused:
        read(text)
    return refused.value.problems


@pytest.mark.parametrize(
    ("trigger", "meant", "bound"),
    [(NOW, AvailableNow(), 50_000), (ONCE, Once(), None), (NEVER, Interval(5_000), 50_000)],
)
def test_a_trigger_says_if_the_pipeline_ends(
    trigger: str, meant: object, bound: int | None
) -> None:
    found = read(manifest(trigger, trigger))
    assert [stage.effective_trigger for stage in found.stages] == [meant, meant]
    assert found.ends is not (trigger == NEVER)
    assert [stage.batch_offsets_max for stage in found.stages] == [bound, bound]


def test_a_pipeline_without_triggers_never_ends() -> None:
    assert not read(manifest()).ends


def test_a_stage_that_ends_is_not_warned_of_small_files() -> None:
    assert read(manifest(NOW, NOW)).warnings() == ()
    assert len(read(manifest(NEVER, NEVER)).warnings()) == 1


def test_available_now_has_the_bound_that_it_says() -> None:
    found = read(manifest(NOW, NOW, "maxOffsetsPerTrigger: 7"))
    assert found.stages[0].batch_offsets_max == 7


@pytest.mark.parametrize(
    ("trigger", "message", "hint", "path"),
    [
        (
            "{once: true, processingTime: 5 seconds}",
            "a stage has one trigger, and these are 2: processingTime, once",
            "keep once, which ends by itself, or processingTime for a stage that never ends",
            "stages.0.trigger",
        ),
        (
            "{availableNow: true, once: true}",
            "a stage has one trigger, and these are 2: availableNow, once",
            "keep once",
            "stages.0.trigger",
        ),
        ("{}", "a trigger is processingTime, availableNow or once", "for ex", "stages.0.trigger"),
        *(
            (
                f"{{{key}: {value}}}",
                f"{key} is true or left out",
                f"write {key}: true, or processingTime",
                f"stages.0.trigger.{key}",
            )
            for key in ("availableNow", "once")
            for value in ("false", "1", "yes please", "null")
        ),
        ("once", "'once' is not accepted: a trigger", "trigger: {once: true}", "stages.0.trigger"),
        ("availableNow", "'availableNow' is not", "{availableNow: true}", "stages.0.trigger"),
        ("{availableNov: true}", "unknown key", "'availableNow'?", "stages.0.trigger.availableNov"),
    ],
)
def test_a_trigger_that_is_none_is_named_with_its_line_and_the_way(
    trigger: str, message: str, hint: str, path: str
) -> None:
    (problem,) = problems_of(manifest(trigger, NOW))
    assert problem.message.startswith(message)
    assert hint in problem.hint
    assert (problem.path, problem.line) == (path, 9)


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        (ONCE, NOW, "stage 'load' has availableNow, and 'enrich' has once"),
        (NOW, ONCE, "stage 'load' has once, and 'enrich' has availableNow"),
        (NOW, NEVER, "stage 'load' has a trigger that never ends, and 'enrich' has availableNow"),
        (NOW, "", "stage 'load' has a trigger that never ends, and 'enrich' has availableNow"),
        ("", ONCE, "stage 'enrich' has a trigger that never ends, and 'load' has once"),
    ],
)
def test_all_stages_end_in_one_way(first: str, second: str, said: str) -> None:
    (problem,) = problems_of(manifest(first, second))
    assert problem.message == f"{said}: all stages of a pipeline end in one way"
    assert problem.hint.startswith("write trigger: {")
    last = {"load": 14 if second else 13, "enrich": 8}
    assert problem.line == last[problem.message.split("'")[1]]


@pytest.mark.parametrize("bound", ["maxOffsetsPerTrigger", "maxBytesPerTrigger"])
def test_once_has_no_bound(bound: str) -> None:
    (problem,) = problems_of(manifest(ONCE, ONCE, f"{bound}: 1000"))
    assert problem.message == f"{bound} does not go with once, which reads all in one batch"
    assert "availableNow" in problem.hint
    assert (problem.path, problem.line) == (f"stages.0.{bound}", 10)


def test_the_native_tree_keeps_the_trigger_as_it_is_written() -> None:
    native = json.loads(read_manifest(manifest(ONCE, ONCE)).native)
    assert native["stages"][0]["trigger"] == {"once": True}
