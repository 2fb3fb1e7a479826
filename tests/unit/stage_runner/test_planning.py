"""From manifest and topics to a definition, and what may change in a running pipeline."""

from dataclasses import replace
from pathlib import Path

import pytest

from builders import make_record
from shared.errors import UserError
from shared.events import PartitionOffset, StageDefinition
from shared.manifest import Manifest, parse_manifest
from stage_runner.core.planning import (
    TopicPlan,
    TopicState,
    define,
    refuse_incompatible,
    topics_of,
)

EXAMPLE = (Path(__file__).parents[3] / "examples" / "orders.yaml").read_text()
TOPICS = {
    "orders.in": TopicState(topic_id="R", starts={0: 0, 1: 7}),
    "orders.enriched": TopicState(topic_id="A", starts={0: 0}),
}


@pytest.fixture
def manifest() -> Manifest:
    return parse_manifest(EXAMPLE)


@pytest.fixture
def defined(manifest: Manifest) -> tuple[StageDefinition, ...]:
    return define(manifest, TOPICS, None)


def test_topics_are_those_of_inputs_and_kafka_sinks(manifest: Manifest) -> None:
    assert topics_of(manifest) == (
        TopicPlan(topic="orders.in", partitions=4, starting="earliest"),
        TopicPlan(topic="orders.enriched", partitions=4, starting="earliest"),
    )


def test_stages_know_their_topics_by_id(defined: tuple[StageDefinition, ...]) -> None:
    enrich, load = defined
    assert [(i.topic, i.topic_id, i.root) for i in enrich.inputs] == [("orders.in", "R", True)]
    assert [(i.topic, i.topic_id, i.root) for i in load.inputs] == [("orders.enriched", "A", False)]
    assert [(s.kind, s.topic_id, s.terminal) for s in enrich.sinks] == [("kafka", "A", False)]
    assert [(s.kind, s.target, s.terminal) for s in load.sinks] == [
        ("iceberg", "lakehouse.raw.orders", True)
    ]


def test_new_stage_begins_where_its_topics_stand(defined: tuple[StageDefinition, ...]) -> None:
    assert defined[0].inputs[0].bases == (
        PartitionOffset(topic_id="R", partition=0, offset=0),
        PartitionOffset(topic_id="R", partition=1, offset=7),
    )


def test_stage_that_exists_keeps_its_bases(
    manifest: Manifest, defined: tuple[StageDefinition, ...]
) -> None:
    later = {**TOPICS, "orders.in": TopicState(topic_id="R", starts={0: 50, 1: 60})}
    assert define(manifest, later, make_record(stages=defined)) == defined


def test_recreated_topic_gets_new_bases(
    manifest: Manifest, defined: tuple[StageDefinition, ...]
) -> None:
    later = {**TOPICS, "orders.in": TopicState(topic_id="R2", starts={0: 3})}
    enrich, _ = define(manifest, later, make_record(stages=defined))
    assert enrich.inputs[0].bases == (PartitionOffset(topic_id="R2", partition=0, offset=3),)


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
