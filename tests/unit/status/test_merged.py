"""A merged token says what its tokens say: never more, never less."""

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from builders import make_input, make_sink, make_stage
from clocks import NOW
from strategies import patiently
from unit.status.slots import (
    COPY,
    KEY,
    LOAD,
    TOPIC,
    claim,
    losing,
    offsets,
    slot,
    span,
    stages_of,
    token,
    view,
    with_stages,
)
from waybill_shared.contract.events import Definition, StageDefinition
from waybill_shared.contract.slots import Removal, SinkState, Slot
from waybill_shared.contract.tokens import Part
from waybill_shared.contract.vectors import Span, merge_spans
from waybill_shared.contract.words import OutcomeKind
from waybill_status.core.outcomes.claims import Claim
from waybill_status.core.outcomes.judge import judge
from waybill_status.core.outcomes.judgements import Judgement, kind_of
from waybill_status.core.outcomes.outcome import count_accepted

SECOND = "c2Vjb25kLnNlY29uZC5pbg"


def part(*spans: Span, generation: int = 1) -> Part:
    return Part(pipeline_id="00" * 8, generation=generation, spans=spans)


def claim_of(*parts: Part) -> Claim:
    return Claim(pipeline=KEY, name="orders", parts=parts)


def second(start: int, end: int) -> Span:
    return Span(topic_id=SECOND, partition=0, start=start, end=end)


def way(name: str, topic_id: str) -> StageDefinition:
    source = make_input(name, topic_id=topic_id)
    return make_stage(name, inputs=(source,), sinks=(make_sink("out"),))


def two_ways(first: int, other: int, *, removed: bool = False, deleted: bool = False) -> Slot:
    """Two inputs, each with a stage and a sink of its own; the second may be removed."""
    stages = (way("first", TOPIC), way("second", SECOND))
    content = slot(generation=2 if removed else 1)
    return replace(
        content,
        definition=Definition(
            name="orders", deleted=deleted, stages=stages[:1] if removed else stages
        ),
        sinks={
            "first/out@1": SinkState(reached=offsets(first)),
            "second/out@1": SinkState(reached=offsets(other, topic_id=SECOND)),
        },
        removals=(Removal(generation=2, stages=stages[1:]),) if removed else (),
    )


BOTH = claim_of(part(span(0, 5)), part(second(0, 5)))


def test_each_input_waits_for_its_own_sinks_only() -> None:
    assert judge(BOTH, view(two_ways(5, 5))).kind == OutcomeKind.COMPLETE
    assert judge(BOTH, view(two_ways(5, 5, deleted=True))).kind == OutcomeKind.COMPLETE
    assert judge(BOTH, view(two_ways(5, 4))).kind == OutcomeKind.IN_PROGRESS


def test_what_is_on_its_way_is_not_lost_with_a_removed_input_that_had_all() -> None:
    assert judge(BOTH, view(two_ways(3, 5, removed=True))).kind == OutcomeKind.IN_PROGRESS
    assert judge(BOTH, view(two_ways(5, 5, removed=True))).kind == OutcomeKind.COMPLETE


def test_of_a_deleted_pipeline_only_what_had_not_arrived_is_lost() -> None:
    judgement = judge(BOTH, view(two_ways(5, 3, deleted=True)))
    assert [(each.reason, each.topic, each.start, each.end) for each in judgement.lost] == [
        ("pipeline_deleted", "second.in", 3, 5)
    ]


def test_a_loss_of_one_outweighs_what_is_unknown_of_another() -> None:
    content = slot(copy=(9,), lake=(9,), bases=(4, 0))
    gone = part(replace(span(0, 5), topic_id="gone"))
    assert judge(claim_of(part(span(2, 6)), gone), view(content)).kind == OutcomeKind.LOST
    unknown = judge(claim_of(part(span(4, 6)), gone), view(content))
    assert (unknown.kind, unknown.reason, unknown.stages) == (
        OutcomeKind.UNKNOWN, "nothing_required", ()
    )  # fmt: skip


def test_an_earlier_generation_does_not_wait_for_a_later_sink() -> None:
    content = slot(enriched=(9,), copy=(9,), lake=(3,), generation=2)
    enrich, load = stages_of(content)
    later = replace(load, sinks=(replace(load.sinks[0], since=2),))
    sinks = {**content.sinks, "load/lake@2": content.sinks[LOAD]}
    content = replace(with_stages(content, enrich, later), sinks=sinks)
    old, new = part(span(0, 9)), part(span(0, 3), generation=2)
    judgement = judge(claim_of(old, new), view(content))
    assert judgement.kind == OutcomeKind.COMPLETE
    assert judge(claim_of(old, replace(new, spans=(span(0, 4),))),
                 view(content)).kind == OutcomeKind.IN_PROGRESS  # fmt: skip


def test_each_stage_and_sink_is_told_once_with_all_that_is_to_come() -> None:
    parts = part(span(0, 4)), part(span(2, 8), generation=2)
    content = slot(enriched=(9,), copy=(5,), lake=(1,), generation=2)
    judgement = judge(claim_of(*parts), view(content))
    assert [stage.name for stage in judgement.stages] == ["enrich", "load"]
    told = {sink.key: sink.behind for stage in judgement.stages for sink in stage.sinks}
    assert (told[COPY], told[LOAD]) == (3, 7)


def test_a_record_of_two_tokens_is_counted_once() -> None:
    both = replace(token(span(0, 4)), parts=(
        *token(span(0, 4)).parts, *token(span(2, 8), generation=2).parts,
    ))  # fmt: skip
    assert count_accepted(both) == 8
    assert both.issued_at == NOW


spans = st.lists(
    st.builds(
        lambda start, length, partition: span(start, start + length, partition),
        st.integers(0, 8), st.integers(1, 4), st.integers(0, 1),
    ),
    min_size=1,
    max_size=3,
)  # fmt: skip
ends = st.tuples(st.integers(0, 12), st.integers(0, 12))


@patiently
@given(st.lists(spans, min_size=1, max_size=4), ends, ends, ends, spans, st.booleans())
def test_a_merge_says_what_the_worst_of_its_tokens_says(
    asked: Sequence[list[Span]],
    bases: tuple[int, int],
    copy: tuple[int, int],
    lake: tuple[int, int],
    gone: list[Span],
    deleted: bool,
) -> None:
    content = slot(enriched=(12, 12), copy=copy, lake=lake, bases=bases, deleted=deleted)
    content = losing(content, LOAD, "retention_passed", *merge_spans(gone))
    alone = [judge(claim(*each), view(content)) for each in asked]
    merged = judge(claim(*merge_spans(s for each in asked for s in each)), view(content))
    assert merged.kind == kind_of(alone)
    assert lost_offsets([merged]) == lost_offsets(alone)


def lost_offsets(judgements: Sequence[Judgement]) -> set[tuple[str, int, int]]:
    return {
        (lost.reason, lost.partition, offset)
        for judgement in judgements
        for lost in judgement.lost
        for offset in range(lost.start, lost.end)
    }
