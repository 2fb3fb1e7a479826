"""Tokens of a pipeline whose sinks come and go: each waits for what it was born to."""

from dataclasses import replace

from builders import make_input, make_sink, make_stage
from unit.status.slots import (
    COPY,
    ENRICH,
    LOAD,
    claim,
    losing,
    offsets,
    slot,
    span,
    stages_of,
    view,
    with_stages,
)
from waybill_shared.contract.events import NEVER
from waybill_shared.contract.slots import SinkState, Slot
from waybill_shared.contract.words import OutcomeKind
from waybill_status.core.outcomes.judge import judge

NEW = make_sink("new", since=2)


def without_load(content: Slot, *, generation: int = 2) -> Slot:
    """After stage load was removed; then `enriched` ends where it is."""
    enrich, load = stages_of(content)
    return with_stages(content, enrich, gone={generation: (load,)})


def with_nothing_left(content: Slot) -> Slot:
    """After all stages were removed, and another came."""
    enrich, load = stages_of(content)
    other = make_stage("other", since=2, inputs=enrich.inputs, sinks=(NEW,))
    return with_stages(content, other, gone={2: (enrich, load)})


def test_a_sink_that_is_removed_is_not_waited_for_any_more() -> None:
    content = slot(enriched=(5,), copy=(5,), lake=(3,))
    assert judge(claim(span(3, 5)), view(content)).kind == OutcomeKind.IN_PROGRESS
    assert judge(claim(span(3, 5)), view(without_load(content))).kind == OutcomeKind.COMPLETE


def test_a_removed_sink_is_told_as_removed_to_tokens_that_knew_it() -> None:
    content = without_load(slot(enriched=(5,), copy=(5,), lake=(3,)))
    states = {
        sink.key: sink.state
        for stage in judge(claim(span(3, 5)), view(content)).stages
        for sink in stage.sinks
    }
    assert states[LOAD] == "removed"
    younger = judge(claim(span(3, 5), generation=2), view(content))
    assert LOAD not in {sink.key for stage in younger.stages for sink in stage.sinks}


def test_what_was_lost_in_a_removed_sink_stays_told() -> None:
    content = losing(slot(enriched=(9,), copy=(9,), lake=(9,)), LOAD, "topic_deleted", span(4, 6))
    assert judge(claim(span(3, 5)), view(content)).kind == OutcomeKind.LOST
    assert judge(claim(span(3, 5)), view(without_load(content))).kind == OutcomeKind.LOST


def test_what_was_lost_in_a_sink_that_the_token_never_waited_for_stays_no_matter() -> None:
    content = losing(slot(enriched=(9,), copy=(9,), lake=(9,)), COPY, "topic_deleted", span(4, 6))
    enrich, load = stages_of(content)
    enriched, copy = enrich.sinks
    copy = replace(copy, awaited_since=NEVER)
    known = with_stages(content, replace(enrich, sinks=(enriched, copy)), load)
    removed = replace(enrich, sinks=(copy,))
    gone = with_stages(content, replace(enrich, sinks=(enriched,)), load, gone={2: (removed,)})
    for each in (known, gone):
        assert judge(claim(span(3, 5)), view(each)).kind == OutcomeKind.COMPLETE


def test_what_a_removed_stage_began_behind_stays_told() -> None:
    content = slot(enriched=(9,), copy=(9,), lake=(9,))
    enrich, load = stages_of(content)
    (source,) = enrich.inputs
    begun = replace(source, bases=offsets(7))
    late = make_stage("late", since=2, inputs=(begun,), sinks=(NEW,))
    content = with_stages(content, enrich, load, late, generation=2)
    gone = with_stages(content, enrich, load, gone={3: (late,)})
    for known in (content, gone):
        told = judge(claim(span(3, 5), generation=2), view(known))
        assert [(e.reason, e.start, e.end) for e in told.lost] == [("before_start", 3, 5)]
    assert judge(claim(span(3, 5), generation=3), view(gone)).kind == OutcomeKind.COMPLETE


def test_what_was_lost_before_a_token_was_born_in_a_sink_that_is_gone_is_not_its_loss() -> None:
    content = losing(slot(enriched=(9,), copy=(9,), lake=(9,)), LOAD, "topic_deleted", span(4, 6))
    younger = claim(span(3, 5), generation=2)
    assert judge(younger, view(without_load(content))).kind == OutcomeKind.COMPLETE


def test_what_a_sink_lost_with_its_topic_is_told_when_its_reader_is_removed() -> None:
    """Not to a token that waited for the reader, and the reader had it: it was complete."""
    content = slot(enriched=(9,), copy=(9,), lake=(5,))
    content = losing(content, ENRICH, "sink_topic_recreated", span(0, 9))
    assert judge(claim(span(3, 5)), view(content)).kind == OutcomeKind.COMPLETE
    assert judge(claim(span(3, 8)), view(content)).kind == OutcomeKind.IN_PROGRESS

    gone = view(without_load(content))
    assert judge(claim(span(3, 5)), gone).kind == OutcomeKind.COMPLETE
    waited = judge(claim(span(3, 8)), gone).lost
    assert [(e.reason, e.start, e.end) for e in waited] == [("sink_topic_recreated", 5, 8)]
    younger = judge(claim(span(3, 5), generation=2), gone).lost
    assert [(e.reason, e.start, e.end) for e in younger] == [("sink_topic_recreated", 3, 5)]


def test_what_one_sink_of_a_reader_had_does_not_make_up_for_the_other() -> None:
    """A token waited for both, so that it was complete with both or not at all."""
    content = slot(enriched=(9,), copy=(9,), lake=(5,))
    content = losing(content, ENRICH, "sink_topic_recreated", span(0, 9))
    enrich, load = stages_of(content)
    second = replace(load.sinks[0], name="second")
    both = replace(load, sinks=(*load.sinks, second))
    sinks = {**content.sinks, "load/second@1": SinkState(reached=offsets(3))}
    together = with_stages(replace(content, sinks=sinks), enrich, both)
    assert judge(claim(span(0, 3)), view(together)).kind == OutcomeKind.COMPLETE
    assert judge(claim(span(3, 5)), view(together)).kind == OutcomeKind.IN_PROGRESS

    gone = without_load(together)
    assert judge(claim(span(0, 3)), view(gone)).kind == OutcomeKind.COMPLETE
    assert judge(claim(span(3, 5)), view(gone)).kind == OutcomeKind.LOST


def test_who_read_a_topic_last_must_have_had_what_is_gone() -> None:
    """One that was removed before it was not waited for any more; nor does it make up for it."""
    content = slot(enriched=(9,), copy=(9,), lake=(5,))
    content = losing(content, ENRICH, "sink_topic_recreated", span(0, 9))
    sinks = {**content.sinks, "again/lake@1": SinkState(reached=offsets(3))}
    content = replace(content, sinks=sinks)
    enrich, load = stages_of(content)
    again = replace(load, name="again")
    for first, last, kind in ((load, again, OutcomeKind.LOST), (again, load, OutcomeKind.COMPLETE)):
        one_by_one = with_stages(content, enrich, gone={2: (first,), 3: (last,)})
        assert judge(claim(span(3, 5)), view(one_by_one)).kind == kind


def test_what_a_reader_lost_on_its_way_stays_told_though_it_is_past_it() -> None:
    content = losing(
        slot(enriched=(9,), copy=(9,), lake=(9,)), ENRICH, "topic_recreated", span(3, 5)
    )
    assert judge(claim(span(3, 5)), view(without_load(content))).kind == OutcomeKind.LOST


def test_with_no_sink_left_the_outcome_is_what_it_was() -> None:
    content = with_nothing_left(slot(enriched=(9,), copy=(9,), lake=(5,)))
    assert judge(claim(span(3, 5)), view(content)).kind == OutcomeKind.COMPLETE
    judgement = judge(claim(span(3, 8)), view(content))
    assert judgement.kind == OutcomeKind.LOST
    assert [(e.reason, e.start, e.end) for e in judgement.lost] == [("sink_removed", 5, 8)]


def test_a_sink_that_a_younger_stage_reads_is_still_the_last_for_older_tokens() -> None:
    content = slot(enriched=(9,), copy=(4,), lake=(9,), generation=2)
    enrich, load = stages_of(content)
    copies = tuple(replace(sink, terminal=sink.name != "copy") for sink in enrich.sinks)
    source = make_input("copy", topic_id="c", root=False, bases=())
    more = make_stage("more", since=2, inputs=(source,), sinks=(NEW,))
    content = with_stages(content, replace(enrich, sinks=copies), load, more)
    new = SinkState(reached=offsets(5, 0))
    content = replace(content, sinks={**content.sinks, "more/new@2": new})
    required = {
        generation: [
            sink.key
            for stage in judge(claim(span(3, 6), generation=generation), view(content)).stages
            for sink in stage.sinks
            if sink.required
        ]
        for generation in (1, 2)
    }
    assert required == {1: [COPY, LOAD], 2: [LOAD, "more/new@2"]}
    assert judge(claim(span(3, 6)), view(content)).kind == OutcomeKind.IN_PROGRESS


def test_an_empty_span_that_was_not_passed_ends_with_the_sinks_that_awaited_it() -> None:
    """It stands for all below its end, of which a sink that came later has no part in."""
    content = with_nothing_left(slot(enriched=(9,), copy=(9,), lake=(5,)))
    assert judge(claim(span(5, 5)), view(content)).kind == OutcomeKind.COMPLETE
    judgement = judge(claim(span(7, 7)), view(content))
    assert judgement.kind == OutcomeKind.LOST
    assert [(e.reason, e.start, e.end) for e in judgement.lost] == [("sink_removed", 5, 7)]
