"""What may change in a running pipeline, and what is refused with a hint."""

from dataclasses import replace

import pytest

from builders import make_record
from unit.stage_runner.fakes import EXAMPLE
from unit.stage_runner.plans import DEFINED, ENRICH, LOAD, TOPICS
from waybill_shared.contract.errors import UserError
from waybill_shared.contract.manifest.reading import read_manifest
from waybill_stage_runner.core.pipelines.compatibility import refuse_incompatible, refuse_recreated
from waybill_stage_runner.core.pipelines.planning import define


def test_same_topics_are_compatible() -> None:
    refuse_incompatible(make_record(stages=DEFINED), DEFINED)


def test_added_and_removed_stages_are_compatible() -> None:
    refuse_incompatible(make_record(stages=DEFINED[:1]), DEFINED)
    refuse_incompatible(make_record(stages=DEFINED), DEFINED[:1])


def test_stage_that_would_read_another_topic_is_refused() -> None:
    moved = replace(ENRICH.inputs[0], topic="orders.other", topic_id="O")
    changed = (replace(ENRICH, inputs=(moved,)), LOAD)
    with pytest.raises(UserError) as raised:
        refuse_incompatible(make_record(stages=DEFINED), changed)
    (problem,) = raised.value.problems
    assert problem.message == (
        "plan_incompatible: stage enrich read orders.in (R), now it would read orders.other (O)"
    )
    assert problem.path == "stages.enrich.inputs"
    assert "under a new name" in problem.hint


def test_stage_that_would_read_a_recreated_topic_is_refused() -> None:
    recreated = replace(ENRICH, inputs=(replace(ENRICH.inputs[0], topic_id="R2"),))
    with pytest.raises(UserError, match=r"orders\.in \(R\), now it would read orders\.in \(R2\)"):
        refuse_incompatible(make_record(stages=DEFINED), (recreated, LOAD))


def test_hint_for_a_recreated_topic_is_to_restart() -> None:
    read = replace(ENRICH, inputs=(replace(ENRICH.inputs[0], topic_id="R2"),))
    written = replace(ENRICH, sinks=(replace(ENRICH.sinks[0], topic_id="A2"),))
    for recreated in (read, written):
        with pytest.raises(UserError) as raised:
            refuse_incompatible(make_record(stages=DEFINED), (recreated, LOAD))
        assert "`waybill restart orders --from earliest`" in raised.value.problems[0].hint


def test_where_to_begin_on_a_recreated_topic_must_be_said() -> None:
    with pytest.raises(UserError) as raised:
        refuse_recreated(make_record(stages=DEFINED), {"orders.in": "R2"})
    gone, recreated = raised.value.problems
    assert gone.message == "topic_recreated: topic orders.enriched had id A, now it does not exist"
    assert recreated.message == "topic_recreated: topic orders.in had id R, now it has id R2"
    assert "`waybill restart orders --from earliest`" in recreated.hint


def test_there_is_nothing_to_choose_where_nothing_is_read() -> None:
    """The enriched topic is only written here."""
    refuse_recreated(make_record(stages=DEFINED[:1]), {"orders.in": "R", "orders.enriched": "A2"})


def test_stage_that_would_lose_all_its_sinks_is_refused() -> None:
    """None would be left to tell where the stage stands."""
    elsewhere = replace(LOAD.sinks[0], name="other", target="lakehouse.raw.other")
    other = replace(LOAD, sinks=(elsewhere,))
    with pytest.raises(UserError, match="would lose all of its sinks"):
        refuse_incompatible(make_record(stages=DEFINED), (ENRICH, other))


def test_sink_that_would_move_is_refused() -> None:
    moved = replace(LOAD, sinks=(replace(LOAD.sinks[0], target="lakehouse.raw.b"),))
    with pytest.raises(UserError, match=r"now sink lake would write iceberg lakehouse\.raw\.b"):
        refuse_incompatible(make_record(stages=DEFINED), (ENRICH, moved))


def test_sink_under_a_new_name_on_its_place_is_refused() -> None:
    """After a crash between two sinks it would begin at the other one's fence: rows twice."""
    renamed = replace(LOAD, sinks=(replace(LOAD.sinks[0], name="pond"),))
    with pytest.raises(UserError, match="as sink lake, now as sink pond"):
        refuse_incompatible(make_record(stages=DEFINED), (ENRICH, renamed))


def test_input_that_would_turn_from_inner_to_root_or_back_is_refused() -> None:
    root = replace(LOAD, inputs=(replace(LOAD.inputs[0], root=True),))
    with pytest.raises(UserError, match="what another stage writes, now"):
        refuse_incompatible(make_record(stages=DEFINED), (root,))
    with pytest.raises(UserError, match="an input of the pipeline, now"):
        refuse_incompatible(make_record(stages=(root,)), DEFINED)


def test_reader_of_what_another_stage_would_write_is_refused() -> None:
    """The other one's bases would be how far all had come: rows that are still to be read, too."""
    before = make_record(stages=DEFINED)
    renamed = read_manifest(EXAMPLE.replace("name: enrich\n", "name: polish\n")).model
    with pytest.raises(
        UserError, match=r"load read what stage enrich wrote .* polish would"
    ) as why:
        refuse_incompatible(before, define(renamed, TOPICS, before))
    assert "keep the name enrich, or give stage load a new name, too" in why.value.problems[0].hint

    both = read_manifest(renamed_stages(EXAMPLE)).model
    refuse_incompatible(before, define(both, TOPICS, before))


def renamed_stages(text: str) -> str:
    return text.replace("name: enrich\n", "name: polish\n").replace("name: load\n", "name: fill\n")
