"""Who is asked again when a pipeline has changed: all whose outcome is another one, few more."""

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from unit.status.slots import COPY, ENRICH, LOAD, claim, life, losing, slot, span, view
from waybill_shared.contract.slots import Slot
from waybill_shared.contract.vectors import ENDLESS, Span
from waybill_status.core.outcomes.claims import Claim
from waybill_status.core.outcomes.judge import judge
from waybill_status.core.outcomes.needs import Index, alike, needs_of

OFFSETS = st.integers(min_value=0, max_value=12)
PAIRS = st.tuples(OFFSETS, OFFSETS)


@st.composite
def spans(draw: st.DrawFn, partition: int) -> Span:
    start, length = draw(OFFSETS), draw(OFFSETS)
    return span(start, start + length, partition)


@st.composite
def changed_slots(draw: st.DrawFn) -> tuple[Slot, Slot]:
    """A slot, and what some commits have made of it."""
    bases = draw(PAIRS)
    enriched, copy, lake = (draw(PAIRS) for _ in range(3))
    first = slot(enriched=enriched, copy=copy, lake=lake, bases=bases)
    enriched, copy, lake = (
        (a + draw(OFFSETS), b + draw(OFFSETS)) for a, b in (enriched, copy, lake)
    )
    second = slot(enriched=enriched, copy=copy, lake=lake, bases=bases)
    if draw(st.booleans()):
        sink, lost = draw(st.sampled_from([ENRICH, COPY, LOAD])), draw(spans(partition=0))
        lost = replace(lost, start=lost.start or 0)
        first, second = (losing(each, sink, "retention_passed", lost) for each in (first, second))
    return first, second


@given(asked=st.tuples(spans(0), spans(1)), slots=changed_slots())
@example(asked=(span(2, 4), span(0, 1, 1)), slots=(slot(lake=(1, 0)), slot(lake=(3, 0))))
@example(asked=(span(4, 4), span(0, 0, 1)), slots=(slot(lake=(1, 0)), slot(lake=(4, 0))))
def test_whoever_is_not_taken_has_the_same_outcome(
    asked: tuple[Span, Span], slots: tuple[Slot, Slot]
) -> None:
    token, (before, after) = claim(*asked), map(view, slots)
    assert alike(after, before)
    index = Index()
    index.put(7, needs_of(token, before))
    if not index.take(after):
        assert judge(token, after) == judge(token, before)


def waiting(index: Index, number: int, asked: Claim, content: Slot) -> None:
    index.put(number, needs_of(asked, view(content)))


def test_a_commit_takes_only_those_whose_records_it_brings() -> None:
    index, nothing = Index(), slot(lake=(0, 0), copy=(0, 0))
    for number in range(100):
        waiting(index, number, claim(span(number, number + 2)), nothing)
    assert index.take(view(slot(lake=(0, 50), copy=(0, 0)))) == set(), "another partition"
    assert index.take(view(slot(lake=(3, 50), copy=(0, 0)))) == {0, 1, 2}
    assert index.take(view(slot(lake=(3, 50), copy=(0, 0)))) == set()
    waiting(index, 2, claim(span(2, 4)), slot(lake=(3, 50), copy=(0, 0)))
    assert index.take(view(slot(lake=(4, 50), copy=(0, 0)))) == {2, 3}


def test_nothing_is_remembered_of_whoever_has_gone() -> None:
    index, content = Index(), slot(lake=(3, 0), copy=(0, 0))
    for number in range(10):
        waiting(index, number, claim(span(number, 20), span(0, 5, 1)), content)
        waiting(index, number, claim(span(number, 20)), content)
    index.take(view(slot(lake=(8, 1), copy=(0, 0))))
    for number in range(10):
        index.drop(number)
    assert len(index) == 0


@pytest.mark.parametrize(
    "other",
    [
        slot(lake=(5, 4), deleted=True),
        slot(lake=(5, 4), generation=2),
        slot(lake=(5, 4), lifecycle=life("Stopped")),
        slot(lake=(5, 3)),
        slot(lake=(5, 4, 1)),
        slot(lake=(ENDLESS, 4)),
        losing(slot(lake=(5, 4)), LOAD, "topic_deleted", span(5, 9)),
    ],
)
def test_all_are_asked_when_more_has_changed_than_how_far_sinks_are(other: Slot) -> None:
    before = view(slot(lake=(4, 4)))
    assert alike(view(slot(lake=(5, 4))), before)
    assert not alike(view(other), before)
    assert not alike(view(slot(lake=(5, 4)), age_ms=6_000), before), "the tracker is silent"
