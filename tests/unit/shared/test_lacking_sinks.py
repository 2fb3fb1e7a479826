"""Which sinks lack the record of a dead letter, and to which of them a replay does harm."""

from dataclasses import replace

import pytest

from builders import ORDERS_ID, make_input, make_record, make_sink, make_stage
from waybill_shared.contract import dead_letters as named
from waybill_shared.contract.events import StageDefinition
from waybill_shared.contract.lacking_sinks import (
    Obstacles,
    ReplayHarm,
    find_harm,
    find_lacking,
)
from waybill_shared.contract.manifest.model import Manifest
from waybill_shared.contract.manifest.reading import read_manifest

OFFSET = 17
STAGE = make_stage(sinks=(make_sink("lake"), make_sink("copy"), make_sink("late", since=3)))


def letter(**changes: str) -> dict[str, str]:
    facts = {
        named.STAGE: "enrich",
        named.TOPIC: "orders.in",
        named.TOPIC_ID: ORDERS_ID,
        named.PARTITION: "0",
        named.OFFSET: str(OFFSET),
        named.GENERATION: "2",
    }
    return facts | {getattr(named, name.upper()): text for name, text in changes.items()}


def lacking(facts: dict[str, str], *stages: StageDefinition) -> list[str]:
    return [each.key for each in find_lacking(stages or (STAGE,), facts)]


def test_a_letter_of_one_sink_is_of_this_one() -> None:
    assert lacking(letter(sink="enrich/copy@1")) == ["enrich/copy@1"]
    assert lacking(letter(sink="enrich/copy@2")) == [], "another life of its name"
    assert lacking(letter(sink="enrich/gone@1")) == []


def test_other_letters_are_of_all_sinks_of_that_time() -> None:
    assert lacking(letter()) == ["enrich/lake@1", "enrich/copy@1"]
    assert lacking(letter(generation="3")) == ["enrich/lake@1", "enrich/copy@1", "enrich/late@3"]


def test_a_letter_may_name_its_stage_as_it_was() -> None:
    renamed = replace(STAGE, name="prepare", was=("enrich",))
    assert lacking(letter(), renamed) == ["enrich/lake@1", "enrich/copy@1"]


def test_a_stage_with_the_name_of_a_removed_one_is_another() -> None:
    other = replace(STAGE, name="enrich", was=("other",))
    assert lacking(letter(stage_key="enrich@1"), other) == []
    assert lacking(letter(stage_key="other@1"), other) == ["other/lake@1", "other/copy@1"]


def test_a_letter_that_names_no_generation_is_of_the_first() -> None:
    facts = letter()
    del facts[named.GENERATION]
    assert lacking(facts) == ["enrich/lake@1", "enrich/copy@1"]


@pytest.mark.parametrize(("base", "lacks"), [(OFFSET, True), (OFFSET + 1, False)])
def test_a_sink_that_begins_after_the_record_never_was_to_get_it(base: int, lacks: bool) -> None:
    late = replace(make_sink("late", since=2), bases={(ORDERS_ID, 0): base})
    stage = make_stage(sinks=(make_sink("lake"), late))
    assert ("enrich/late@2" in lacking(letter(), stage)) is lacks


def test_a_stage_that_is_gone_lacks_nothing() -> None:
    assert lacking(letter(stage="load")) == []
    again = replace(STAGE, since=3, sinks=(make_sink("lake", since=3),))
    assert lacking(letter(), again) == [], "another stage has its name now"
    assert lacking(letter(topic="payments.in")) == [], "it does not read that any more"


def test_a_topic_that_was_created_again_is_no_matter() -> None:
    source = replace(make_input(), topic_id="N", bases={("N", 0): 500}, retired=(ORDERS_ID,))
    assert lacking(letter(), replace(STAGE, inputs=(source,))) == ["enrich/lake@1", "enrich/copy@1"]


MANIFEST = """
version: 1
name: orders
inputs:
  - {name: orders, kafka: {topic: orders.in}, schema: "id BIGINT, at TIMESTAMP"}
stages:
  - name: enrich
    inputs: [orders]
    sinks:
      - {name: inner, kafka: {topic: orders.inner}}
      - {name: lake, iceberg: {table: raw.orders}}
  - name: load
    inputs: [inner]
    sinks:
      - {name: newest, iceberg: {table: raw.newest, mode: upsert, keys: [id]}}
      - {name: ordered, iceberg: {table: raw.ordered, mode: upsert, keys: [id], orderBy: at}}
      - {name: whole, iceberg: {table: raw.whole, mode: overwrite}}
"""


def harm(*into: str) -> ReplayHarm:
    manifest: Manifest = read_manifest(MANIFEST).model
    inner = replace(make_input("inner", topic_id="A", root=False), topic="orders.inner")
    stages = (
        make_stage(sinks=(make_sink("inner", topic_id="A"), make_sink("lake"))),
        make_stage(
            "load",
            inputs=(inner,),
            sinks=tuple(map(make_sink, ("newest", "ordered", "whole"))),
        ),
    )
    return find_harm(manifest, stages, into)


def test_a_sink_that_each_batch_replaces_would_have_nothing_else() -> None:
    assert harm("load/whole@1") == ReplayHarm(replaced=("whole",))
    assert harm("load/newest@1", "load/ordered@1") == ReplayHarm(aged=("newest",))
    assert harm("enrich/lake@1") == ReplayHarm()


def test_so_would_one_that_gets_what_comes_of_it() -> None:
    assert harm("enrich/inner@1") == ReplayHarm(replaced=("whole",), aged=("newest",))


def obstacle(**changes: str) -> str | None:
    stages = (
        STAGE,
        make_stage("load", inputs=(make_input(),), sinks=(make_sink("whole"), make_sink("newest"))),
    )
    record = replace(make_record(), stages=stages, manifest=read_manifest(MANIFEST))
    return Obstacles(record).of(letter(**changes))


def test_a_letter_that_a_sink_lacks_can_be_replayed() -> None:
    assert obstacle() is None
    assert obstacle(stage="load", sink="load/newest@1") is None


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"stage": "gone"}, "pipeline orders has no stage gone any more that lacks it"),
        ({"sink": "enrich/old@1"}, "pipeline orders has no sink enrich/old any more that lacks it"),
        ({"topic": "https://a.example/b.csv"}, "it is a row of a file"),
        ({"stage": "load"}, "each batch replaces what whole contains"),
    ],
)
def test_any_other_says_why_it_cannot(changes: dict[str, str], why: str) -> None:
    said = obstacle(**changes)
    assert said is not None
    assert said.startswith(why)
