"""What a changed manifest would make of a pipeline, as it is told."""

from dataclasses import replace

import pytest

from builders import applied
from unit.stage_runner.fakes import EXAMPLE, command
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.manifest.reading import read_manifest
from waybill_stage_runner.core.pipelines.change import Change
from waybill_stage_runner.core.pipelines.column_changes import split_columns
from waybill_stage_runner.core.pipelines.manifest_changes import Alterations, Columns, changes_of
from waybill_stage_runner.core.pipelines.planning import as_planned, define, topics_of
from waybill_stage_runner.core.pipelines.records import create_record

LOAD = EXAMPLE.index("  - name: load")
SINK = "      - {name: lake, iceberg: {table: raw.orders, mode: append}}"
SECOND = SINK.replace("lake,", "lake2,", 1).replace("raw.orders", "raw.orders2")
MORE = """
  - name: audit
    inputs: [orders]
    sinks: [{name: audited, kafka: {topic: orders.audited}}]
"""
OTHER_INPUT = 'inputs:\n  - {name: people, kafka: {topic: people}, schema: "id BIGINT"}'


def pipeline(text: str) -> PipelineRecord:
    manifest = read_manifest(text).model
    stages = define(manifest, as_planned(topics_of(manifest), {}), None)
    return create_record(command(1), applied(text), manifest.state, stages, 0)


def changes(
    now: str,
    before: str = EXAMPLE,
    *,
    was: Columns | None = None,
    will: Columns | None = None,
    alterations: Alterations | None = None,
) -> tuple[Change, ...]:
    assert now != before or was is not None
    record, manifest = pipeline(before), read_manifest(now).model
    return changes_of(
        record,
        manifest_before=read_manifest(before).model,
        manifest_now=manifest,
        stages_now=define(manifest, as_planned(topics_of(manifest), {}), record),
        columns_before=was or {},
        columns_now=will or {},
        alterations=alterations or {},
    )


def test_the_same_changes_nothing() -> None:
    assert changes(EXAMPLE + "# a remark") == ()


@pytest.mark.parametrize(
    ("old", "new", "kind", "message"),
    [
        ("version: 1", "version: 1\nstate: stopped", "change_state", "would be stopped, is run"),
        ("inputs:", OTHER_INPUT, "add_input", "+ input people: reads topic people"),
        (
            "inputs:",
            "deadLetter: {budget: 5 per 1 hour}\ninputs:",
            "change_dead_letter",
            "~ deadLetter: budget is 5 per 1 hour, was 100 per 1 minute; what lies there stays",
        ),
        (
            "inputs:",
            "deadLetter: {topic: dead}\ninputs:",
            "change_dead_letter",
            "~ deadLetter: topic is dead, was one for each input",
        ),
        (
            "    schema:",
            "    onMalformed: drop\n    schema:",
            "change_input",
            "onMalformed is drop, was dead_letter",
        ),
        (
            "customer STRING",
            "customer STRING, age INT",
            "change_input",
            "column age added (INT); records that are processed from now on are read so",
        ),
        ("order_id BIGINT", "order_id INT", "change_input", "order_id is INT, was BIGINT"),
        (", placed_at TIMESTAMP", "", "change_input", "column placed_at removed"),
        ("key: order_id  ", "startingOffsets: latest ", "change_input", "no effect on stages"),
        ("* 0.2 AS", "* 0.3 AS", "change_stage", "step enriched changed; continues where it is"),
        ("1 second", "5 seconds", "change_stage", "trigger is 5000 ms, was 1000 ms; continues"),
        ("key: order_id}}", "key: customer}}", "change_sink", "key changed; for new rows"),
        (
            "key: order_id}}",
            "key: order_id, shared: true}}",
            "change_sink",
            "~ sink enriched_topic of stage enrich: shared is true; no effect on rows",
        ),
        (SINK, f"{SINK}\n{SECOND}", "add_sink", "gets what is written from now on"),
    ],
)
def test_what_goes_on_has_no_effect(old: str, new: str, kind: str, message: str) -> None:
    assert old in EXAMPLE
    found = changes(EXAMPLE.replace(old, new, 1))
    assert message in next(each.message for each in found if message in each.message)
    assert {each.kind for each in found} == {kind}
    assert {each.effect for each in found} == {""}
    assert all("\n" not in each.message for each in found)


def test_another_schedule_is_said() -> None:
    ends = EXAMPLE.replace("    trigger: {processingTime: 1 second}\n", "").replace(
        "    sinks:", "    trigger: {once: true}\n    sinks:"
    )
    nightly = "version: 1\nschedule: {cron: 0 3 * * *, timezone: Europe/Berlin}"
    (added,) = changes(ends.replace("version: 1", nightly), ends)
    assert (added.kind, added.effect) == ("change_schedule", "")
    assert added.message == (
        "~ schedule: it would be cron 0 3 * * *, timezone Europe/Berlin, is none; no effect on rows"
    )
    (removed,) = changes(ends, ends.replace("version: 1", nightly))
    assert "it would be none, is cron 0 3" in removed.message


def test_another_parallelism_is_said() -> None:
    (added,) = changes(EXAMPLE.replace("version: 1", "version: 1\nparallelism: 4"))
    assert (added.kind, added.path, added.effect) == ("change_parallelism", "parallelism", "")
    assert added.message == (
        "~ parallelism: it would be 4, is as the operator says; no effect on rows"
    )


def test_an_input_may_be_called_otherwise_or_go() -> None:
    renamed = EXAMPLE.replace("- name: orders\n", "- name: sales\n").replace("[orders]", "[sales]")
    found = changes(renamed.replace("FROM orders", "FROM sales"))
    assert [each.kind for each in found] == ["rename_input", "change_stage"]
    assert found[0].message == "~ input sales: was called orders; its topic stays"

    (gone,) = changes(EXAMPLE, EXAMPLE.replace("inputs:", OTHER_INPUT, 1))
    assert (gone.kind, gone.effect) == ("remove_input", "")


def test_a_sink_that_goes_loses_what_it_had_not_processed() -> None:
    (gone,) = changes(EXAMPLE, EXAMPLE.replace(SINK, f"{SINK}\n{SECOND}"))
    assert (gone.kind, gone.effect) == ("remove_sink", "loses")
    assert (gone.path, gone.message[:40]) == (
        "stages.load.sinks.lake2",
        "- sink lake2 of stage load: iceberg lake",
    )


def test_steps_come_and_go() -> None:
    step = '      - {name: enriched, sql: "SELECT *, amount * 0.2 AS tax FROM orders"}\n'
    first = '      - {name: first, sql: "SELECT * FROM orders"}\n'
    assert step in EXAMPLE
    more = EXAMPLE.replace(step, first + step)
    assert "step first added; continues" in changes(more)[0].message
    assert "step first removed; continues" in changes(EXAMPLE, more)[0].message


def test_a_stage_that_comes_writes_nothing_again_and_one_that_goes_loses() -> None:
    (added,) = changes(EXAMPLE + MORE)
    assert (added.kind, added.effect) == ("add_stage", "")
    assert added.message == (
        "+ stage audit: new, reads orders from earliest; writes kafka orders.audited"
    )
    (gone,) = changes(EXAMPLE, EXAMPLE + MORE)
    assert (gone.kind, gone.effect) == ("remove_stage", "loses")


def test_a_stage_with_a_new_name_writes_again() -> None:
    added, gone = changes(EXAMPLE.replace("name: load", "name: load2"))
    assert (added.kind, added.effect) == ("add_stage", "writes_again")
    assert "writes again what was written before to lakehouse.raw.orders" in added.message
    assert (gone.kind, gone.path, gone.effect) == ("remove_stage", "stages.load", "loses")


def test_a_stage_that_begins_at_the_end_writes_nothing_again() -> None:
    latest = EXAMPLE.replace("key: order_id  ", "startingOffsets: latest ")
    renamed = latest.replace("name: enrich\n", "name: enrich2\n")
    added = next(each for each in changes(renamed, latest) if each.kind == "add_stage")
    assert (added.effect, "orders from latest" in added.message) == ("", True)


def test_columns_are_told_where_both_are_known() -> None:
    was = {"load": {"lake": "`a` int, `b` decimal(10,2), `c` struct<x:int,y:int>"}}
    will = {"load": {"lake": "`a` bigint, `c` struct<x:int,y:int>, `d` string"}}
    found = changes(EXAMPLE, was=was, will=will)
    assert [each.message for each in found] == [
        "~ sink lake of stage load: column a is bigint, was int",
        "~ sink lake of stage load: column d added (string)",
        "~ sink lake of stage load: column b removed",
    ]
    assert changes(EXAMPLE, was=was) == ()


def test_a_list_of_columns_is_split_at_its_own_commas() -> None:
    assert split_columns("`a,b` map<string,int>, `c` decimal(10,2)") == {
        "a,b": "map<string,int>",
        "c": "decimal(10,2)",
    }
    assert split_columns("") == {}


def test_a_pipeline_that_was_stopped_by_hand_would_run() -> None:
    manifest = read_manifest(EXAMPLE).model
    record = replace(pipeline(EXAMPLE), desired="stopped")
    (state,) = changes_of(
        record,
        manifest_before=manifest,
        manifest_now=manifest,
        stages_now=record.stages,
        columns_before={},
        columns_now={},
        alterations={},
    )
    assert state.message == "~ state: it would be running, is stopped"


def test_rules_that_are_new_gone_or_other_are_told() -> None:
    before, now = (
        EXAMPLE.replace("    schema:", f"    expectations: [{rules}]\n    schema:", 1)
        for rules in (
            "{name: a, expect: amount > 0}, {name: b, expect: amount > 1}, {name: c, expect: c}",
            "{name: b, expect: x, onViolation: drop}, {name: d, expect: d}, {name: c, expect: c}",
        )
    )
    assert [each.message.removeprefix("~ input orders: ") for each in changes(now, before)] == [
        "rule b changed",
        "rule b: onViolation is drop, was dead_letter",
        "rule d added (dead_letter)",
        "rule a removed",
    ]
    swapped = before.replace("name: a, expect: amount > 0}, {name: b, expect: amount > 1", "X")
    swapped = swapped.replace("X", "name: b, expect: amount > 1}, {name: a, expect: amount > 0")
    (told,) = changes(swapped, before)
    assert told.message == "~ input orders: order of rules changed"


def test_pipeline_that_gets_another_name_continues() -> None:
    (change,) = changes(EXAMPLE.replace("name: orders\n", "name: sales\nwas: orders\n", 1))
    assert (change.kind, change.path, change.effect) == ("rename_pipeline", "name", "")
    assert change.message.startswith("~ pipeline sales: renamed, was orders; each stage continues")
