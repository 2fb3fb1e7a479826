"""Properties of the outcome of a token, for any slot."""

from hypothesis import given
from hypothesis import strategies as st

from unit.status.slots import (
    COPY,
    LOAD,
    claim,
    slot,
    span,
    stages_of,
    view,
)
from waybill_shared.contract.slots import Slot
from waybill_shared.contract.vectors import Span, Vector
from waybill_shared.contract.words import OutcomeKind
from waybill_status.core.outcomes.judge import judge
from waybill_status.core.outcomes.judgements import FINAL

ends = st.tuples(st.integers(0, 12), st.integers(0, 12))
spans = st.builds(
    lambda start, length, partition: span(start, start + length, partition),
    st.integers(0, 8),
    st.integers(1, 5),
    st.integers(0, 1),
)
slots = st.builds(
    lambda copy, lake, bases, deleted: slot(copy=copy, lake=lake, bases=bases, deleted=deleted),
    ends,
    ends,
    st.tuples(st.integers(0, 5), st.integers(0, 5)),
    st.booleans(),
)
tokens = st.lists(spans, min_size=1, max_size=4)


@given(tokens, slots)
def test_complete_is_said_exactly_when_all_has_arrived(wanted: list[Span], content: Slot) -> None:
    """Also with the slot's clock at any age: `complete` follows from the vectors alone."""
    judgement = judge(claim(*wanted), view(content, age_ms=60_000))
    bases = _ends_of(stages_base(content))
    arrived = [_ends_of(content.sinks[key].reached) for key in (COPY, LOAD)]
    covered = all(
        max(vector.get(s.partition, 0), bases.get(s.partition, 0)) >= s.end
        for vector in arrived
        for s in wanted
    )
    early = any(s.start < bases[s.partition] for s in wanted)
    assert (judgement.kind == OutcomeKind.COMPLETE) == (covered and not early)
    assert (judgement.kind == OutcomeKind.LOST) == bool(judgement.lost)
    assert early <= (judgement.kind == OutcomeKind.LOST)


@given(tokens, slots, ends, ends)
def test_a_final_outcome_stays_as_the_sinks_go_on(
    wanted: list[Span], content: Slot, more_copy: tuple[int, int], more_lake: tuple[int, int]
) -> None:
    before = judge(claim(*wanted), view(content))
    definition = content.definition
    assert definition is not None
    if definition.deleted:
        return
    copy, lake = (_ends_of(content.sinks[key].reached) for key in (COPY, LOAD))
    bases = _ends_of(stages_base(content))
    later = slot(
        copy=(copy[0] + more_copy[0], copy[1] + more_copy[1]),
        lake=(lake[0] + more_lake[0], lake[1] + more_lake[1]),
        bases=(bases[0], bases[1]),
    )
    after = judge(claim(*wanted), view(later))
    if before.kind in FINAL:
        assert (after.kind, after.lost) == (before.kind, before.lost)


def stages_base(content: Slot) -> Vector:
    return stages_of(content)[0].inputs[0].bases


def _ends_of(offsets: Vector) -> dict[int, int]:
    return {partition: end for (_, partition), end in offsets.items()}
