"""Strategies for what happens in a flow."""

from hypothesis import strategies as st

from unit.token_tracker.flow import Recreate, Skip, Take

COUNTS = st.tuples(*[st.integers(0, 3)] * 4)
FANS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), min_size=1, max_size=4).map(tuple)
NONE_DIES = st.just(frozenset[int]())


def takes(
    last_stage: int,
    *,
    counts: st.SearchStrategy[tuple[int, ...]] = COUNTS,
    dead: st.SearchStrategy[frozenset[int]] = NONE_DIES,
) -> st.SearchStrategy[Take]:
    return st.builds(Take, stage=st.integers(0, last_stage), counts=counts, fans=FANS, dead=dead)


def skips(last_stage: int) -> st.SearchStrategy[Skip]:
    return st.builds(Skip, stage=st.integers(0, last_stage), counts=COUNTS)


def recreations(last_topic: int) -> st.SearchStrategy[Recreate]:
    return st.builds(Recreate, topic=st.integers(0, last_topic))
