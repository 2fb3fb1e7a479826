"""From manifest and topics to a definition, and what may change in a running pipeline."""

from dataclasses import replace

import pytest

from builders import make_record
from unit.stage_runner.fakes import EXAMPLE
from unit.stage_runner.plans import DEFINED, ENRICH, LOAD, MANIFEST, TOPICS, empty
from waybill_shared.contract.events import NEVER, PipelineRecord, SinkDefinition
from waybill_shared.contract.manifest.reading import read_manifest
from waybill_stage_runner.core.pipelines.compatibility import refuse_incompatible
from waybill_stage_runner.core.pipelines.planning import TopicPlan, TopicState, define, topics_of


def test_topics_are_those_of_inputs_and_kafka_sinks() -> None:
    """What a stage reads has dead letters."""
    read, between = topics_of(MANIFEST)
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


def test_stages_know_their_topics_by_id() -> None:
    enrich, load = DEFINED
    assert [(i.topic, i.topic_id, i.root) for i in enrich.inputs] == [("orders.in", "R", True)]
    assert [(i.topic, i.topic_id, i.root) for i in load.inputs] == [("orders.enriched", "A", False)]
    assert [(s.kind, s.topic_id, s.terminal) for s in enrich.sinks] == [("kafka", "A", False)]
    assert [(s.kind, s.target, s.terminal) for s in load.sinks] == [
        ("iceberg", "lakehouse.raw.orders", True)
    ]


def test_new_stage_begins_where_its_topics_stand() -> None:
    assert ENRICH.inputs[0].bases == {("R", 0): 0, ("R", 1): 7}


def test_stage_that_exists_keeps_its_bases() -> None:
    later = {**TOPICS, "orders.in": empty("R", 50, 60)}
    assert define(MANIFEST, later, make_record(stages=DEFINED)) == DEFINED


def test_recreated_topic_gets_new_bases() -> None:
    later = {**TOPICS, "orders.in": empty("R2", 3)}
    enrich, _ = define(MANIFEST, later, make_record(stages=DEFINED))
    assert enrich.inputs[0].bases == {("R2", 0): 3}


def test_topic_that_was_recreated_is_remembered_by_its_old_ids() -> None:
    stages = DEFINED
    for topic_id in ("R2", "R3"):
        topics = {**TOPICS, "orders.in": empty(topic_id, 0)}
        stages = define(MANIFEST, topics, make_record(stages=stages))
    assert stages[0].inputs[0].retired == ("R", "R2")
    assert stages[1] == LOAD, "what was not recreated is as before"
    assert define(MANIFEST, topics, make_record(stages=stages)) == stages, "an apply forgets none"


def test_recreated_topic_between_stages_is_known_to_both() -> None:
    topics = {**TOPICS, "orders.enriched": empty("A2", 0, 0)}
    enrich, load = define(MANIFEST, topics, make_record(stages=DEFINED))
    assert (enrich.sinks[0].topic_id, enrich.sinks[0].since) == ("A2", 1)
    assert load.inputs[0].retired == ("A",)
    assert [*load.inputs[0].bases.values()] == [0, 0]


def test_input_that_is_called_otherwise_keeps_its_bases() -> None:
    renamed = replace(ENRICH, inputs=(replace(ENRICH.inputs[0], name="sales"),))
    later = {**TOPICS, "orders.in": empty("R", 50, 60)}
    assert define(MANIFEST, later, make_record(stages=(renamed, LOAD))) == DEFINED


@pytest.mark.parametrize("start_from", ["earliest", "latest"])
def test_restart_says_where_inputs_begin_but_what_is_between_stages_is_read_whole(
    start_from: str,
) -> None:
    assert [plan.starting for plan in topics_of(MANIFEST, start_from)] == [start_from, "earliest"]


def test_stages_stand_in_the_order_of_their_data() -> None:
    backwards = MANIFEST.model_copy(update={"stages": MANIFEST.stages[::-1]})
    assert [stage.name for stage in define(backwards, TOPICS, None)] == ["enrich", "load"]


def test_sink_that_comes_later_begins_where_its_inputs_ended_when_it_came() -> None:
    """What is written from then on must be in it; what was taken before, it has no part in."""
    load = replace(LOAD, sinks=(replace(LOAD.sinks[0], name="other"),))
    now = {**TOPICS, "orders.enriched": TopicState(topic_id="A", starts={0: 0}, ends={0: 40})}
    at_40 = {("A", 0): 40}

    (sink,) = define(MANIFEST, now, make_record(stages=(ENRICH, load)))[1].sinks

    assert (sink.since, sink.bases) == (2, at_40)
    refuse_incompatible(
        make_record(stages=(ENRICH, load)), (ENRICH, replace(load, sinks=(*load.sinks, sink)))
    )


def test_sink_keeps_where_it_began() -> None:
    later = replace(LOAD.sinks[0], since=2, bases={("A", 0): 4})
    before = make_record(stages=(ENRICH, replace(LOAD, sinks=(later,))), generation=5)
    assert define(MANIFEST, TOPICS, before)[1].sinks == (later,)


def test_stage_that_returns_is_another_one() -> None:
    without = make_record(stages=DEFINED[:1], generation=2)
    enrich, load = define(MANIFEST, TOPICS, without)
    assert (enrich.since, enrich.sinks[0].since) == (1, 1)
    assert (load.since, load.sinks[0].since, load.sinks[0].bases) == (3, 3, {})


def test_all_sinks_have_part_from_where_the_last_came() -> None:
    """A stage that reads roots from their beginning has part in all that it finds there."""
    begun = ENRICH.inputs[0].bases
    assert ENRICH.inputs[0].whole == begun
    assert LOAD.inputs[0].whole == {}
    later = {**TOPICS, "orders.in": TopicState(topic_id="R", starts={0: 2}, ends={0: 5, 1: 9})}
    same = define(MANIFEST, later, make_record(stages=DEFINED))
    assert same[0].inputs[0].whole == begun
    without_load = make_record(stages=DEFINED[:1])
    grown = define(MANIFEST, later, without_load)
    assert [*grown[0].inputs[0].whole.values()] == [5, 9]


def test_sink_whose_topic_was_created_anew_says_since_when() -> None:
    """What nobody was told of is gone with the topic, whether a stage reads there or not."""
    anew = {**TOPICS, "orders.enriched": empty("A2", 0)}
    alone = MANIFEST.model_copy(update={"stages": MANIFEST.stages[:1]})
    for each in (alone, MANIFEST):
        before = make_record(stages=DEFINED[: len(each.stages)], generation=4)
        stages = define(each, anew, before)
        assert stages[0].sinks[0].moved == 5

        again = define(each, anew, make_record(stages=stages, generation=5))
        assert again[0].sinks[0].moved == 5
    assert define(MANIFEST, TOPICS, make_record(stages=DEFINED))[0].sinks[0].moved == 0


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
