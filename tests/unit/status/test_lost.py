"""What is told of records that will never be processed."""

import json
from dataclasses import replace

import pytest
from pydantic import TypeAdapter

from unit.status.slots import (
    COPY,
    ENRICH,
    KEY,
    LOAD,
    TOPIC,
    claim,
    losing,
    offsets,
    progress,
    slot,
    span,
    stages_of,
    token,
    view,
    with_stages,
)
from unit.status.test_judge import lost
from waybill_shared.contract.slots import Slot
from waybill_shared.contract.tokens import Part
from waybill_shared.contract.vectors import ENDLESS, Span
from waybill_shared.contract.words import OutcomeKind
from waybill_status.core.outcomes.claims import Claim
from waybill_status.core.outcomes.judge import judge
from waybill_status.core.outcomes.outcome import Outcome, describe

NEW = "bmV3IG9yZGVycyB0b3BpYw"
REASONS = ["topic_recreated", "topic_deleted", "retention_passed"]


def restarted(content: Slot, *, retired: tuple[str, ...] = (TOPIC,), begun: int = 0) -> Slot:
    """After the input's topic was created anew; the stage had begun at `begun`."""
    enrich, load = stages_of(content)
    orders = replace(
        enrich.inputs[0], topic_id=NEW, bases=offsets(0, 0, topic_id=NEW), retired=retired
    )
    content = with_stages(content, replace(enrich, inputs=(orders,)), load)
    return replace(content, former={"enrich@1": offsets(begun, 0)})


def closed(*, at: int = 7, partitions: int = 1) -> Slot:
    """Both sinks behind had taken all below `at` when the topic was gone."""
    ends = (ENDLESS,) * partitions
    content = slot(enriched=ends, copy=ends, lake=ends)
    for key in (ENRICH, COPY, LOAD):
        content = losing(content, key, "topic_recreated", span(at, ENDLESS))
    return restarted(content)


@pytest.mark.parametrize("reason", REASONS)
@pytest.mark.parametrize("sink", [COPY, LOAD])
def test_what_never_comes_to_a_required_sink_is_lost(reason: str, sink: str) -> None:
    content = losing(slot(copy=(9,), lake=(9,)), sink, reason, span(4, 6))
    judgement = judge(claim(span(3, 8)), view(content))
    assert (judgement.kind, lost(judgement)) == (OutcomeKind.LOST, [(reason, 0, 4, 6)])
    for beside in (span(3, 4), span(6, 8), span(4, 6, partition=1)):
        assert judge(claim(beside), view(content)).kind != OutcomeKind.LOST


def test_a_loss_is_told_before_the_rest_has_come() -> None:
    content = losing(slot(copy=(1,), lake=(1,)), LOAD, "retention_passed", span(4, 6))
    assert judge(claim(span(3, 8)), view(content)).kind == OutcomeKind.LOST
    assert judge(claim(span(6, 8)), view(content)).kind == OutcomeKind.IN_PROGRESS


def test_of_what_was_lost_in_several_sinks_each_offset_is_told_once() -> None:
    content = losing(slot(copy=(9,), lake=(9,)), COPY, "topic_deleted", span(5, 7))
    content = losing(content, LOAD, "retention_passed", span(3, 6))
    content = losing(content, LOAD, "topic_deleted", span(7, 8))
    judgement = judge(claim(span(0, 9)), view(content))
    assert lost(judgement) == [("retention_passed", 0, 3, 5), ("topic_deleted", 0, 5, 8)]


def test_reasons_of_one_token_do_not_overlap() -> None:
    content = slot(copy=(2,), lake=(2,), bases=(2, 0), deleted=True)
    content = losing(content, LOAD, "topic_deleted", span(0, 5))
    judgement = judge(claim(span(0, 9)), view(content))
    assert lost(judgement) == [
        ("before_start", 0, 0, 2),
        ("topic_deleted", 0, 2, 5),
        ("pipeline_deleted", 0, 5, 9),
    ]


def test_what_a_topic_that_is_gone_still_had_is_lost_and_the_rest_complete() -> None:
    content = closed(at=7)
    assert judge(claim(span(3, 7)), view(content)).kind == OutcomeKind.COMPLETE
    assert lost(judge(claim(span(3, 9)), view(content))) == [("topic_recreated", 0, 7, 9)]


def test_a_partition_that_nobody_named_is_lost_with_its_topic() -> None:
    content = closed()
    judgement = judge(claim(span(3, 5), span(1, 4, partition=5)), view(content))
    assert (judgement.kind, lost(judgement)) == (OutcomeKind.LOST, [("topic_recreated", 5, 1, 4)])
    new = Span(topic_id=NEW, partition=5, start=1, end=4)
    assert judge(claim(new), view(content)).kind == OutcomeKind.IN_PROGRESS


@pytest.mark.parametrize("partition", [0, 1, 5])
def test_what_holds_nothing_is_complete_when_its_topic_is_gone(partition: int) -> None:
    """Retention had removed all records, in a partition perhaps that no stage had named."""
    nothing = claim(span(9, 9, partition))
    content = closed()
    lagging = replace(content.sinks[LOAD], reached=offsets(5, 0))
    open_still = replace(content, sinks={**content.sinks, LOAD: lagging})
    assert judge(nothing, view(open_still)).kind == OutcomeKind.IN_PROGRESS
    assert judge(nothing, view(content)).kind == OutcomeKind.COMPLETE
    assert judge(nothing, view(deleted(open_still))).kind == OutcomeKind.LOST
    assert judge(nothing, view(deleted(content))).kind == OutcomeKind.COMPLETE


def deleted(content: Slot) -> Slot:
    assert content.definition is not None
    return replace(content, definition=replace(content.definition, deleted=True))


def test_an_old_topic_that_nobody_has_closed_is_still_in_progress() -> None:
    content = restarted(slot(copy=(5,), lake=(5,)))
    assert judge(claim(span(3, 5)), view(content)).kind == OutcomeKind.COMPLETE
    assert judge(claim(span(3, 9)), view(content)).kind == OutcomeKind.IN_PROGRESS


def test_a_topic_of_which_the_input_never_was_is_unknown() -> None:
    content = restarted(slot(copy=(9,), lake=(9,)), retired=())
    judgement = judge(claim(span(3, 5)), view(content))
    assert (judgement.kind, judgement.reason) == (OutcomeKind.UNKNOWN, "nothing_required")


def test_what_lay_before_the_start_stays_lost_when_the_topic_is_gone() -> None:
    content = restarted(slot(copy=(9,), lake=(9,)), begun=4)
    assert lost(judge(claim(span(2, 6)), view(content))) == [("before_start", 0, 2, 4)]
    assert judge(claim(span(4, 6)), view(content)).kind == OutcomeKind.COMPLETE


def test_parts_of_old_and_new_topic_are_judged_together() -> None:
    content = closed()
    (old,) = claim(span(3, 5)).parts
    part = Part(pipeline_id=old.pipeline_id, generation=1, spans=(span(3, 5), _new(0, 2)))
    both = Claim(pipeline=KEY, name="o", parts=(part,))
    assert judge(both, view(content)).kind == OutcomeKind.IN_PROGRESS


def _new(start: int, end: int) -> Span:
    return Span(topic_id=NEW, partition=0, start=start, end=end)


def test_a_sink_that_will_not_get_all_is_lost_and_not_committed() -> None:
    content = losing(slot(enriched=(9,), copy=(9,), lake=(5,)), LOAD, "x", span(4, 6))
    batches = {(KEY, key): progress(1, 9, sink=key).batch for key in (ENRICH, COPY, LOAD)}
    outcome = describe(token(span(3, 9)), [judge(claim(span(3, 9)), view(content))], batches)
    enrich, load = outcome.stages
    assert (enrich.state, load.state, load.blocked_by, load.batch) == ("done", "lost", None, None)
    assert (load.sinks[0].state, load.sinks[0].behind) == ("lost", 3), "offsets 6 to 8 still come"


def test_the_end_of_a_topic_that_is_gone_is_never_shown() -> None:
    asked = token(span(3, 9), span(0, 2, partition=4))
    (part,) = asked.parts
    both = Claim(pipeline=KEY, name="orders", parts=(part,))
    outcome = describe(asked, [judge(both, view(closed()))], {})
    told = TypeAdapter(Outcome).dump_json(outcome).decode()
    assert str(ENDLESS)[:6] not in told
    assert [(each["start"], each["end"]) for each in json.loads(told)["lost"]] == [(7, 9), (0, 2)]
