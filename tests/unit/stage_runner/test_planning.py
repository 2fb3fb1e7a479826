"""From manifest and topics to a definition, and what may change in a running pipeline."""

from dataclasses import replace
from pathlib import Path

import pytest

from builders import make_record
from waybill_shared.contract.errors import UserError
from waybill_shared.contract.events import NEVER, PipelineRecord, SinkDefinition, StageDefinition
from waybill_shared.contract.manifest.model import Manifest
from waybill_shared.contract.manifest.reading import read_manifest
from waybill_stage_runner.core.pipelines.compatibility import refuse_incompatible, refuse_recreated
from waybill_stage_runner.core.pipelines.planning import TopicPlan, TopicState, define, topics_of

EXAMPLE = (Path(__file__).parents[3] / "examples" / "orders.yaml").read_text()
TOPICS = {
    "orders.in": TopicState(topic_id="R", starts={0: 0, 1: 7}, ends={0: 0, 1: 7}),
    "orders.enriched": TopicState(topic_id="A", starts={0: 0}, ends={0: 0}),
}


@pytest.fixture
def manifest() -> Manifest:
    return read_manifest(EXAMPLE).model


@pytest.fixture
def defined(manifest: Manifest) -> tuple[StageDefinition, ...]:
    return define(manifest, TOPICS, None)


def test_topics_are_those_of_inputs_and_kafka_sinks(manifest: Manifest) -> None:
    """What a stage reads has dead letters."""
    read, between = topics_of(manifest)
    assert read == TopicPlan(
        topic="orders.in", partitions=4, starting="earliest", dead_letters="orders.in.dlq"
    )
    assert between == TopicPlan(
        topic="orders.enriched",
        partitions=4,
        starting="earliest",
        written=True,
        dead_letters="orders.enriched.dlq",
    )


def test_what_no_stage_reads_has_no_dead_letters() -> None:
    last = EXAMPLE[: EXAMPLE.index("  - name: load")]
    assert [plan.dead_letters for plan in topics_of(read_manifest(last).model)] == [
        "orders.in.dlq",
        None,
    ]


def test_dead_letters_go_where_the_manifest_says() -> None:
    text = EXAMPLE.replace("inputs:", "deadLetter: {topic: dead}\ninputs:", 1)
    assert {plan.dead_letters for plan in topics_of(read_manifest(text).model)} == {"dead"}


def test_stages_know_their_topics_by_id(defined: tuple[StageDefinition, ...]) -> None:
    enrich, load = defined
    assert [(i.topic, i.topic_id, i.root) for i in enrich.inputs] == [("orders.in", "R", True)]
    assert [(i.topic, i.topic_id, i.root) for i in load.inputs] == [("orders.enriched", "A", False)]
    assert [(s.kind, s.topic_id, s.terminal) for s in enrich.sinks] == [("kafka", "A", False)]
    assert [(s.kind, s.target, s.terminal) for s in load.sinks] == [
        ("iceberg", "lakehouse.raw.orders", True)
    ]


def test_new_stage_begins_where_its_topics_stand(defined: tuple[StageDefinition, ...]) -> None:
    assert defined[0].inputs[0].bases == {("R", 0): 0, ("R", 1): 7}


def test_stage_that_exists_keeps_its_bases(
    manifest: Manifest, defined: tuple[StageDefinition, ...]
) -> None:
    later = {
        **TOPICS,
        "orders.in": TopicState(topic_id="R", starts={0: 50, 1: 60}, ends={0: 50, 1: 60}),
    }
    assert define(manifest, later, make_record(stages=defined)) == defined


def test_recreated_topic_gets_new_bases(
    manifest: Manifest, defined: tuple[StageDefinition, ...]
) -> None:
    later = {**TOPICS, "orders.in": TopicState(topic_id="R2", starts={0: 3}, ends={0: 3})}
    enrich, _ = define(manifest, later, make_record(stages=defined))
    assert enrich.inputs[0].bases == {("R2", 0): 3}


def test_topic_that_was_recreated_is_remembered_by_its_old_ids(
    manifest: Manifest, defined: tuple[StageDefinition, ...]
) -> None:
    stages = defined
    for topic_id in ("R2", "R3"):
        topics = {**TOPICS, "orders.in": TopicState(topic_id=topic_id, starts={0: 0}, ends={0: 0})}
        stages = define(manifest, topics, make_record(stages=stages))
    assert stages[0].inputs[0].retired == ("R", "R2")
    assert stages[1] == defined[1], "what was not recreated is as before"
    assert define(manifest, topics, make_record(stages=stages)) == stages, "an apply forgets none"


def test_recreated_topic_between_stages_is_known_to_both(
    manifest: Manifest, defined: tuple[StageDefinition, ...]
) -> None:
    topics = {
        **TOPICS,
        "orders.enriched": TopicState(topic_id="A2", starts={0: 0, 1: 0}, ends={0: 0, 1: 0}),
    }
    enrich, load = define(manifest, topics, make_record(stages=defined))
    assert (enrich.sinks[0].topic_id, enrich.sinks[0].since) == ("A2", 1)
    assert load.inputs[0].retired == ("A",)
    assert [*load.inputs[0].bases.values()] == [0, 0]


def test_input_that_is_called_otherwise_keeps_its_bases(
    manifest: Manifest, defined: tuple[StageDefinition, ...]
) -> None:
    renamed = replace(defined[0], inputs=(replace(defined[0].inputs[0], name="sales"),))
    later = {
        **TOPICS,
        "orders.in": TopicState(topic_id="R", starts={0: 50, 1: 60}, ends={0: 50, 1: 60}),
    }
    assert define(manifest, later, make_record(stages=(renamed, defined[1]))) == defined


@pytest.mark.parametrize("start_from", ["earliest", "latest"])
def test_restart_says_where_inputs_begin_but_what_is_between_stages_is_read_whole(
    manifest: Manifest, start_from: str
) -> None:
    assert [plan.starting for plan in topics_of(manifest, start_from)] == [start_from, "earliest"]


def test_stages_stand_in_the_order_of_their_data(manifest: Manifest) -> None:
    backwards = manifest.model_copy(update={"stages": manifest.stages[::-1]})
    assert [stage.name for stage in define(backwards, TOPICS, None)] == ["enrich", "load"]


def test_same_topics_are_compatible(defined: tuple[StageDefinition, ...]) -> None:
    refuse_incompatible(make_record(stages=defined), defined)


def test_added_and_removed_stages_are_compatible(defined: tuple[StageDefinition, ...]) -> None:
    refuse_incompatible(make_record(stages=defined[:1]), defined)
    refuse_incompatible(make_record(stages=defined), defined[:1])


def test_stage_that_would_read_another_topic_is_refused(
    defined: tuple[StageDefinition, ...],
) -> None:
    moved = replace(defined[0].inputs[0], topic="orders.other", topic_id="O")
    changed = (replace(defined[0], inputs=(moved,)), defined[1])
    with pytest.raises(UserError) as raised:
        refuse_incompatible(make_record(stages=defined), changed)
    (problem,) = raised.value.problems
    assert problem.message == (
        "plan_incompatible: stage enrich read orders.in (R), now it would read orders.other (O)"
    )
    assert problem.path == "stages.enrich.inputs"
    assert "under a new name" in problem.hint


def test_stage_that_would_read_a_recreated_topic_is_refused(
    defined: tuple[StageDefinition, ...],
) -> None:
    recreated = replace(defined[0], inputs=(replace(defined[0].inputs[0], topic_id="R2"),))
    with pytest.raises(UserError, match=r"orders\.in \(R\), now it would read orders\.in \(R2\)"):
        refuse_incompatible(make_record(stages=defined), (recreated, defined[1]))


def test_hint_for_a_recreated_topic_is_to_restart(defined: tuple[StageDefinition, ...]) -> None:
    read = replace(defined[0], inputs=(replace(defined[0].inputs[0], topic_id="R2"),))
    written = replace(defined[0], sinks=(replace(defined[0].sinks[0], topic_id="A2"),))
    for recreated in (read, written):
        with pytest.raises(UserError) as raised:
            refuse_incompatible(make_record(stages=defined), (recreated, defined[1]))
        assert "`waybill restart orders --from earliest`" in raised.value.problems[0].hint


def test_where_to_begin_on_a_recreated_topic_must_be_said(
    defined: tuple[StageDefinition, ...],
) -> None:
    with pytest.raises(UserError) as raised:
        refuse_recreated(make_record(stages=defined), {"orders.in": "R2"})
    gone, recreated = raised.value.problems
    assert gone.message == "topic_recreated: topic orders.enriched had id A, now it does not exist"
    assert recreated.message == "topic_recreated: topic orders.in had id R, now it has id R2"
    assert "`waybill restart orders --from earliest`" in recreated.hint


def test_there_is_nothing_to_choose_where_nothing_is_read(
    defined: tuple[StageDefinition, ...],
) -> None:
    """The enriched topic is only written here."""
    refuse_recreated(make_record(stages=defined[:1]), {"orders.in": "R", "orders.enriched": "A2"})


def test_sink_that_comes_later_begins_where_its_inputs_ended_when_it_came(
    manifest: Manifest, defined: tuple[StageDefinition, ...]
) -> None:
    """What is written from then on must be in it; what was taken before, it has no part in."""
    load = replace(defined[1], sinks=(replace(defined[1].sinks[0], name="other"),))
    now = {**TOPICS, "orders.enriched": TopicState(topic_id="A", starts={0: 0}, ends={0: 40})}
    at_40 = {("A", 0): 40}

    (sink,) = define(manifest, now, make_record(stages=(defined[0], load)))[1].sinks

    assert (sink.since, sink.bases) == (2, at_40)
    refuse_incompatible(
        make_record(stages=(defined[0], load)),
        (defined[0], replace(load, sinks=(*load.sinks, sink))),
    )


def test_sink_keeps_where_it_began(
    manifest: Manifest, defined: tuple[StageDefinition, ...]
) -> None:
    later = replace(defined[1].sinks[0], since=2, bases={("A", 0): 4})
    before = make_record(stages=(defined[0], replace(defined[1], sinks=(later,))), generation=5)
    assert define(manifest, TOPICS, before)[1].sinks == (later,)


def test_stage_that_would_lose_all_its_sinks_is_refused(
    defined: tuple[StageDefinition, ...],
) -> None:
    """None would be left to tell where the stage stands."""
    elsewhere = replace(defined[1].sinks[0], name="other", target="lakehouse.raw.other")
    other = replace(defined[1], sinks=(elsewhere,))
    with pytest.raises(UserError, match="would lose all of its sinks"):
        refuse_incompatible(make_record(stages=defined), (defined[0], other))


def test_sink_that_would_move_is_refused(defined: tuple[StageDefinition, ...]) -> None:
    moved = replace(defined[1], sinks=(replace(defined[1].sinks[0], target="lakehouse.raw.b"),))
    with pytest.raises(UserError, match=r"now sink lake would write iceberg lakehouse\.raw\.b"):
        refuse_incompatible(make_record(stages=defined), (defined[0], moved))


def test_sink_under_a_new_name_on_its_place_is_refused(
    defined: tuple[StageDefinition, ...],
) -> None:
    """After a crash between two sinks it would begin at the other one's fence: rows twice."""
    renamed = replace(defined[1], sinks=(replace(defined[1].sinks[0], name="pond"),))
    with pytest.raises(UserError, match="as sink lake, now as sink pond"):
        refuse_incompatible(make_record(stages=defined), (defined[0], renamed))


def test_input_that_would_turn_from_inner_to_root_or_back_is_refused(
    defined: tuple[StageDefinition, ...],
) -> None:
    root = replace(defined[1], inputs=(replace(defined[1].inputs[0], root=True),))
    with pytest.raises(UserError, match="what another stage writes, now"):
        refuse_incompatible(make_record(stages=defined), (root,))
    with pytest.raises(UserError, match="an input of the pipeline, now"):
        refuse_incompatible(make_record(stages=(root,)), defined)


def test_reader_of_what_another_stage_would_write_is_refused(
    manifest: Manifest, defined: tuple[StageDefinition, ...]
) -> None:
    """The other one's bases would be how far all had come: rows that are still to be read, too."""
    before = make_record(stages=defined)
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


def test_stage_that_returns_is_another_one(
    manifest: Manifest, defined: tuple[StageDefinition, ...]
) -> None:
    without = make_record(stages=defined[:1], generation=2)
    enrich, load = define(manifest, TOPICS, without)
    assert (enrich.since, enrich.sinks[0].since) == (1, 1)
    assert (load.since, load.sinks[0].since, load.sinks[0].bases) == (3, 3, {})


def test_all_sinks_have_part_from_where_the_last_came(
    manifest: Manifest, defined: tuple[StageDefinition, ...]
) -> None:
    """A stage that reads roots from their beginning has part in all that it finds there."""
    begun = defined[0].inputs[0].bases
    assert defined[0].inputs[0].whole == begun
    assert defined[1].inputs[0].whole == {}
    later = {**TOPICS, "orders.in": TopicState(topic_id="R", starts={0: 2}, ends={0: 5, 1: 9})}
    same = define(manifest, later, make_record(stages=defined))
    assert same[0].inputs[0].whole == begun
    without_load = make_record(stages=defined[:1])
    grown = define(manifest, later, without_load)
    assert [*grown[0].inputs[0].whole.values()] == [5, 9]


def test_sink_whose_topic_was_created_anew_says_since_when(
    manifest: Manifest, defined: tuple[StageDefinition, ...]
) -> None:
    """What nobody was told of is gone with the topic, whether a stage reads there or not."""
    anew = {**TOPICS, "orders.enriched": TopicState(topic_id="A2", starts={0: 0}, ends={0: 0})}
    alone = manifest.model_copy(update={"stages": manifest.stages[:1]})
    for each in (alone, manifest):
        before = make_record(stages=defined[: len(each.stages)], generation=4)
        stages = define(each, anew, before)
        assert stages[0].sinks[0].moved == 5

        again = define(each, anew, make_record(stages=stages, generation=5))
        assert again[0].sinks[0].moved == 5
    assert define(manifest, TOPICS, make_record(stages=defined))[0].sinks[0].moved == 0


LOOKING = """
version: 1
name: orders
inputs: [{name: orders, kafka: {topic: orders.in}, schema: "id BIGINT"}]
stages:
  - name: look
    inputs: [orders]
    sinks:
      - {name: seen, console: {rows: 5}}
"""
BESIDE = LOOKING + "      - {name: out, kafka: {topic: orders.enriched}}\n"


def look(manifest: str, *before: str) -> tuple[SinkDefinition, ...]:
    """The sinks of the last of these manifests, which were applied one after the other."""
    record: PipelineRecord | None = None
    for generation, text in enumerate((*before, manifest), start=1):
        stages = define(read_manifest(text).model, TOPICS, record)
        record = make_record(stages=stages, generation=generation)
    return stages[0].sinks


def test_tokens_do_not_wait_for_what_is_only_looked_at() -> None:
    seen, out = look(BESIDE)
    assert (seen.awaited_since, seen.terminal) == (NEVER, False)
    assert (out.awaited_since, out.terminal) == (0, True)


def test_tokens_wait_for_the_only_sink_of_a_stage() -> None:
    (seen,) = look(LOOKING)
    assert (seen.awaited_since, seen.terminal) == (1, True)


def test_what_becomes_the_only_sink_is_waited_for_by_later_tokens_and_then_for_good() -> None:
    (alone,) = look(LOOKING, BESIDE)
    assert (alone.since, alone.awaited_since, alone.terminal) == (1, 2, True)
    seen, _ = look(BESIDE, BESIDE, LOOKING)
    assert (seen.since, seen.awaited_since, seen.terminal) == (1, 2, True)


def test_a_sink_of_another_kind_is_another_sink() -> None:
    """Though what people call its place is the same."""
    text = LOOKING.replace("seen, console: {rows: 5}", "kept, iceberg: {table: raw.orders}")
    other = text.replace("iceberg: {", "postgres: {connection: lakehouse, ")
    (was,), (now,) = look(text), look(other, text)
    assert was.target == now.target
    assert (was.since, now.since) == (1, 2)
