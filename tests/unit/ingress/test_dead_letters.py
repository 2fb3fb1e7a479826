"""Which messages replay which dead letters, in the stage where each died."""

from dataclasses import replace

import pytest

from builders import ORDERS_ID, applied, make_input, make_record, make_sink, make_stage
from message_builders import make_letter_headers
from waybill_ingress.core.dead_letters import (
    ExpiredDeadLetter,
    Found,
    FoundDeadLetter,
    find_aged,
    letters_of,
)
from waybill_ingress.core.replays import parts_of, replayed_letter
from waybill_shared.contract import dead_letters as named
from waybill_shared.contract.dead_letters import LetterId
from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.replays import LetterReplay, ReplayPosition
from waybill_shared.contract.vectors import Span

NOW = 7
DLQ_ID = "D"
MANIFEST = """
version: 1
name: orders
inputs:
  - {name: orders, kafka: {topic: orders.in}, schema: "id BIGINT"}
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
      - {name: whole, iceberg: {table: raw.whole, mode: MODE}}
"""
INNER, LAKE = "enrich/inner@1", "enrich/lake@1"


@pytest.fixture
def record() -> PipelineRecord:
    return make_pipeline("append")


def make_pipeline(mode: str) -> PipelineRecord:
    inner = replace(make_input("inner", topic_id="A", root=False), topic="orders.inner")
    stages = (
        make_stage(sinks=(make_sink("inner", topic_id="A"), make_sink("lake"))),
        make_stage("load", inputs=(inner,), sinks=(make_sink("newest"), make_sink("whole"))),
    )
    return replace(make_record(), stages=stages, manifest=applied(MANIFEST.replace("MODE", mode)))


def place(offset: int) -> LetterId:
    return LetterId(topic="orders.in.dlq", partition=0, offset=100 + offset, source=offset)


def letter(offset: int, **changes: str | None) -> FoundDeadLetter:
    facts = {named.OFFSET: str(offset), named.STAGE: "enrich"}
    facts |= {getattr(named, name.upper()): text for name, text in changes.items()}
    return FoundDeadLetter(
        key=b"k", value=b"1234", headers=make_letter_headers(facts), topic_id=DLQ_ID
    )


def letters(record: PipelineRecord, found: Found, *places: LetterId) -> list[LetterReplay]:
    return letters_of(record, places or tuple(found), found, now_ms=NOW)


def refusal(record: PipelineRecord, found: Found, *places: LetterId) -> Refusal:
    with pytest.raises(Refusal) as refused:
        letters(record, found, *places)
    return refused.value


def test_a_letter_goes_to_its_stage_and_all_its_sinks(record: PipelineRecord) -> None:
    (asked,) = letters(record, {place(17): letter(17)})
    assert asked == LetterReplay(
        tenant=record.tenant,
        pipeline_uid=record.pipeline_uid,
        at=NOW,
        stage="enrich@1",
        sinks=(INNER, LAKE),
        letter=place(17),
        letter_topic_id=DLQ_ID,
        topic="orders.in",
        topic_id=ORDERS_ID,
        partition=0,
        size=5,
    )


def test_a_letter_of_one_sink_goes_there_alone(record: PipelineRecord) -> None:
    (asked,) = letters(record, {place(17): letter(17, sink=LAKE)})
    assert asked.sinks == (LAKE,)


def test_a_letter_of_a_later_stage_goes_there(record: PipelineRecord) -> None:
    found = {place(4): letter(4, stage="load", topic="orders.inner", topic_id="A")}
    (asked,) = letters(record, found)
    assert (asked.stage, asked.sinks) == ("load@1", ("load/newest@1", "load/whole@1"))
    assert find_aged(record, [asked]) == ("newest",)


def test_those_into_the_same_sinks_follow_one_another(record: PipelineRecord) -> None:
    found = {place(1): letter(1), place(2): letter(2, sink=LAKE), place(3): letter(3)}
    assert [each.letter.source for each in letters(record, found)] == [1, 3, 2]


def test_each_is_asked_for_once(record: PipelineRecord) -> None:
    found = {place(17): letter(17), place(18): letter(18)}
    asked = letters(record, found, place(18), place(17), place(18))
    assert [each.letter.source for each in asked] == [18, 17]


@pytest.mark.parametrize(
    ("found", "slug", "reason"),
    [
        (None, "dead_letter_not_found", "it is no dead letter of pipeline orders"),
        (letter(18), "dead_letter_not_found", "it is no dead letter of pipeline orders"),
        (letter(17, uid="another"), "dead_letter_not_found", "it is no dead letter"),
        (letter(17, partition="one"), "dead_letter_not_found", "it is no dead letter"),
        (letter(17, generation="²"), "dead_letter_not_found", "it is no dead letter"),
        (letter(17, stage="gone"), "sinks_gone", "has no stage gone any more that lacks it"),
        (letter(17, topic="old"), "sinks_gone", "has no stage enrich any more that lacks it"),
        (
            letter(17, sink="enrich/lake@7"),
            "sinks_gone",
            "has no sink enrich/lake any more that lacks it",
        ),
        (ExpiredDeadLetter(since=None), "dead_letter_gone", "does not hold it any more"),
    ],
)
def test_what_cannot_be_replayed_says_why(
    record: PipelineRecord,
    found: FoundDeadLetter | ExpiredDeadLetter | None,
    slug: str,
    reason: str,
) -> None:
    refused = refusal(record, {} if found is None else {place(17): found}, place(17))
    assert refused.slug == slug
    assert reason in refused.detail


def test_no_letter_becomes_all_that_a_sink_contains() -> None:
    """Not even by way of a stage before."""
    record = make_pipeline("overwrite")
    found = {
        place(4): letter(4, stage="load", topic="orders.inner", topic_id="A"),
        place(17): letter(17),
        place(18): letter(18, sink=LAKE),
    }
    refused = refusal(record, found)
    assert refused.slug == "replay_replaces"
    assert "each batch replaces what whole contains" in refused.detail
    rejected = refused.members["rejected"]
    assert isinstance(rejected, list)
    assert [each["index"] for each in rejected] == [0, 1]
    assert letters(record, {place(18): found[place(18)]})


def test_the_token_has_a_part_for_those_into_the_same_sinks(record: PipelineRecord) -> None:
    found = {place(17): letter(17), place(18): letter(18, sink=LAKE), place(19): letter(19)}
    sent = [
        replayed_letter(
            each, ReplayPosition(topic_id="P", partition=3, offset=40 + number), generation=5
        )
        for number, each in enumerate(letters(record, found))
    ]
    both, one = parts_of(record, sent)
    assert (both.into, one.into) == ((INNER, LAKE), (LAKE,))
    assert both.spans == (Span(topic_id="P", partition=3, start=40, end=42),)
    assert one.spans == (Span(topic_id="P", partition=3, start=42, end=43),)
    assert {part.generation for part in (both, one)} == {5}
    assert both.counted
