"""Stages and sinks that go on under another name, and names that cannot be given."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from builders import applied
from unit.stage_runner.fakes import EXAMPLE, command
from unit.stage_runner.test_manifest_changes import changes, pipeline
from waybill_shared.contract.commands import Restart
from waybill_shared.contract.dead_letter_requests import DeadLetterRequest
from waybill_shared.contract.errors import UserError
from waybill_shared.contract.events import PipelineRecord, StageDefinition
from waybill_shared.contract.manifest.reading import read_manifest
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.rewinds import StageRewind
from waybill_shared.contract.slots import key_of, stage_key
from waybill_stage_runner.core.pipelines.planning import as_planned, define, topics_of
from waybill_stage_runner.core.pipelines.records import change_record
from waybill_stage_runner.core.pipelines.removal import sinks_to_remove
from waybill_stage_runner.core.pipelines.renaming import find_wrong_names, in_present_names

ENRICH, LAKE = "name: enrich\n", "{name: lake,"
POLISH = EXAMPLE.replace(ENRICH, "name: polish\n    was: enrich\n")
POND = EXAMPLE.replace(LAKE, "{name: pond, was: lake,")


def apply(before: PipelineRecord, text: str) -> PipelineRecord:
    manifest = read_manifest(text).model
    stages = define(manifest, as_planned(topics_of(manifest), {}), before)
    return change_record(before, applied(text), "running", stages, 1)


def keys(stages: Iterable[StageDefinition]) -> set[tuple[str, str]]:
    return {(stage_key(stage), key_of(stage, sink)) for stage in stages for sink in stage.sinks}


def refusal(before: PipelineRecord, text: str) -> tuple[str, str]:
    with pytest.raises(UserError) as raised:
        apply(before, text)
    assert raised.value.slug is Slug.PLAN_INCOMPATIBLE
    problem = raised.value.problems[0]
    return problem.message, problem.hint


def dead_letter(stage: str) -> DeadLetterRequest:
    return DeadLetterRequest(
        command="c",
        stage=stage,
        topic="t",
        topic_id="T",
        partition=0,
        offset=1,
        reason="r",
        by="a",
    )


def test_stage_and_sink_go_on_under_other_names() -> None:
    before = pipeline(EXAMPLE)
    both = POND.replace(ENRICH, "name: polish\n    was: enrich\n")
    after = apply(before, both)
    assert after.generation == before.generation + 1
    assert keys(after.stages) == keys(before.stages)
    polish, load = after.stages
    assert (polish.name, polish.was, polish.since) == ("polish", ("enrich",), 1)
    assert (load.sinks[0].name, load.sinks[0].was) == ("pond", ("lake",))
    assert polish.inputs == before.stages[0].inputs
    assert sinks_to_remove(before, after) is None


def test_name_of_a_sink_that_a_stage_reads_may_change() -> None:
    before = pipeline(EXAMPLE)
    name = before.stages[0].sinks[0].name
    text = EXAMPLE.replace(f"name: {name}", f"name: fed, was: {name}")
    text = text.replace(f"inputs: [{name}]", "inputs: [fed]").replace(f"FROM {name}", "FROM fed")
    after = apply(before, text)
    assert after.stages[1].inputs[0].name == "fed"
    assert keys(after.stages) == keys(before.stages)


def test_file_that_is_applied_again_changes_nothing() -> None:
    once = apply(pipeline(EXAMPLE), POLISH)
    assert apply(once, POLISH) == once


def test_was_may_be_taken_out_afterwards() -> None:
    once = apply(pipeline(EXAMPLE), POLISH)
    later = apply(once, POLISH.replace("    was: enrich\n", ""))
    assert later.stages == once.stages


def test_name_that_was_given_twice_keeps_the_first_one_for_keys() -> None:
    once = apply(pipeline(EXAMPLE), POLISH)
    third = EXAMPLE.replace(ENRICH, "name: shine\n    was: polish\n")
    twice = apply(once, third)
    assert (twice.stages[0].name, twice.stages[0].was) == ("shine", ("enrich", "polish"))
    assert keys(twice.stages) == keys(once.stages)
    back = apply(twice, EXAMPLE.replace(ENRICH, "name: enrich\n    was: shine\n"))
    assert (back.stages[0].name, keys(back.stages)) == ("enrich", keys(once.stages))


@pytest.mark.parametrize("text", [EXAMPLE, POLISH])
def test_file_from_before_is_refused_with_the_present_name(text: str) -> None:
    """Also the file of the first rename, when there was a second one."""
    now = apply(pipeline(EXAMPLE), POLISH)
    if text == POLISH:
        now = apply(now, EXAMPLE.replace(ENRICH, "name: shine\n    was: polish\n"))
    message, hint = refusal(now, text)
    called = now.stages[0].name
    assert f"is called {called!r} now" in message
    assert f"`name: {called}`" in hint
    assert f"`was: {called}`" in hint


def test_name_that_never_was_is_refused() -> None:
    text = EXAMPLE.replace(ENRICH, "name: polish\n    was: enrihc\n")
    message, hint = refusal(pipeline(EXAMPLE), text)
    assert "no stage was ever called 'enrihc'" in message
    assert "enrich" in hint
    assert "take `was` out" in hint
    sink = EXAMPLE.replace(LAKE, "{name: pond, was: pool,")
    assert "no sink was ever called 'pool'" in refusal(pipeline(EXAMPLE), sink)[0]


def test_new_pipeline_was_nothing() -> None:
    (problem,) = find_wrong_names(read_manifest(POLISH))
    assert "no stage was ever called 'enrich'" in problem.message
    assert problem.hint == "take `was` out: then it is a new one"


def test_two_stages_cannot_become_one() -> None:
    both = EXAMPLE[: EXAMPLE.index("  - name: load")] + (
        "  - name: load\n    was: enrich\n    inputs: [orders]\n"
        "    sinks: [{name: lake, iceberg: {table: raw.orders, mode: append}}]\n"
    )
    text = both.replace(both[both.index("  - name: enrich") : both.index("  - name: load")], "")
    message, _ = refusal(pipeline(EXAMPLE), text)
    assert "'load' is another one than 'enrich'" in message


def test_former_name_is_nobody_elses_while_the_one_that_had_it_exists() -> None:
    now = apply(pipeline(EXAMPLE), POND)
    second = (
        POND.replace(" was: lake,", "")
        + "      - {name: lake, iceberg: {table: raw.other, mode: append}}\n"
    )
    message, hint = refusal(now, second)
    assert "'lake' is called 'pond' now" in message
    assert "give it another name" in hint


def test_sink_that_does_not_say_what_it_was_is_refused_with_the_way_to_rename_it() -> None:
    text = EXAMPLE.replace(LAKE, "{name: pond,")
    message, hint = refusal(pipeline(EXAMPLE), text)
    assert "as sink lake, now as sink pond" in message
    assert hint == "keep the name lake, or rename it: `was: lake`"


def test_other_target_is_refused_under_another_name_too() -> None:
    text = POND.replace("raw.orders,", "raw.elsewhere,")
    assert "now sink pond would write" in refusal(pipeline(EXAMPLE), text)[0]


def test_diff_says_renamed_and_nothing_else() -> None:
    found = changes(POND.replace(ENRICH, "name: polish\n    was: enrich\n"))
    assert [(each.kind, each.effect) for each in found] == [
        ("rename_stage", ""),
        ("rename_sink", ""),
    ]
    assert [each.message for each in found] == [
        "~ stage polish: renamed, was enrich; continues where it is",
        "~ sink pond of stage load: renamed, was lake; continues where it is",
    ]


def test_diff_compares_columns_and_settings_with_those_under_the_old_name() -> None:
    text = POND.replace("mode: append", "mode: append, shared: true")
    was, will = {"load": {"lake": "`a` int"}}, {"load": {"pond": "`a` int, `b` int"}}
    found = changes(text, was=was, will=will)
    assert {each.kind for each in found} == {"rename_sink", "change_sink", "change_columns"}


def test_what_the_record_says_of_a_removed_stage_is_not_of_one_that_is_called_so_later() -> None:
    """Else that one would read again what the other one was to."""
    mine = StageRewind(stage="enrich", since=1, number=1, starts={}, by="a", at=1)
    removed = replace(mine, stage="polish", number=2)
    letter, of_removed = dead_letter("enrich"), dead_letter("polish")
    before = replace(pipeline(EXAMPLE), rewinds=(mine, removed), dead_letters=(letter, of_removed))
    after = apply(before, POLISH)
    assert after.rewinds == (replace(mine, stage="polish"),)
    assert after.dead_letters == (replace(letter, stage="polish"),)


def test_what_the_record_says_of_stages_follows_their_names() -> None:
    rewind = StageRewind(stage="enrich", since=1, number=1, starts={}, by="a", at=1)
    earlier_life = replace(rewind, since=0)
    letter = dead_letter("enrich")
    any_stage = replace(letter, stage=None)
    before = replace(
        pipeline(EXAMPLE), rewinds=(rewind, earlier_life), dead_letters=(letter, any_stage)
    )
    after = apply(before, POLISH)
    assert [each.stage for each in after.rewinds] == ["polish", "enrich"]
    assert [each.stage for each in after.dead_letters] == ["polish", None]


def test_command_may_name_a_stage_as_it_was() -> None:
    record = apply(pipeline(EXAMPLE), POLISH)
    sent = replace(command(1), body=Restart(stage="enrich"))
    body = in_present_names(sent, record).body
    assert isinstance(body, Restart)
    assert body.stage == "polish"
    other = replace(command(1), body=Restart(stage="other"))
    assert in_present_names(other, record) == other
