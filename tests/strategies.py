"""Hypothesis strategies that several test modules use."""

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from waybill_shared.contract.tokens import Part, Token
from waybill_shared.contract.vectors import Span

# For `@given`: on a busy machine no example is too slow, and the tier stays fast.
patiently = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
OFFSET_MAX = 10**12
GENERATION_MAX = 2**20
topic_ids = st.sampled_from(
    ["AAAAAAAAAAAAAAAAAAAAAA", "BBBBBBBBBBBBBBBBBBBBBA", "q83vEjRWeJCrze8SNFZ4kA"]
)
partitions = st.integers(0, 5)


@st.composite
def spans(draw: st.DrawFn, offset_max: int = OFFSET_MAX) -> Span:
    end = draw(st.integers(0, offset_max))
    start = draw(st.integers(0, end))
    return Span(topic_id=draw(topic_ids), partition=draw(partitions), start=start, end=end)


@st.composite
def parts(draw: st.DrawFn) -> Part:
    """Spans in the order in which a token keeps them: by topic."""
    chosen = sorted(draw(st.lists(spans(), max_size=6)), key=lambda span: span.topic_id)
    return Part(
        pipeline_id=draw(st.binary(min_size=8, max_size=8)).hex(),
        generation=draw(st.integers(0, GENERATION_MAX)),
        spans=tuple(chosen),
        counted=draw(st.booleans()),
        into=tuple(draw(st.lists(st.sampled_from(["load/lake@1", "lädt/see@12"]), max_size=2))),
    )


@st.composite
def tokens(draw: st.DrawFn) -> Token:
    return Token(
        issued_at=draw(st.integers(0, 2**45)),
        request_id=draw(st.binary(min_size=8, max_size=8)).hex(),
        parts=tuple(draw(st.lists(parts(), max_size=3))),
        identity_assumed=draw(st.booleans()),
        oldest_at=draw(st.none() | st.integers(0, 2**45)),
    )
