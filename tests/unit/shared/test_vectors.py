"""Arithmetic on positions."""

from collections.abc import Iterable
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from strategies import patiently, spans
from waybill_shared.contract.vectors import (
    ENDLESS,
    Span,
    TopicPartition,
    Vector,
    between,
    beyond,
    covers,
    ends,
    join,
    meet,
    merge_spans,
    overlap,
    passes,
    record_spans,
    topics_deleted_in,
    without,
)

places = st.tuples(st.sampled_from("AB"), st.integers(0, 2))
vectors = st.dictionaries(places, st.integers(0, 9))


def span(start: int, end: int, partition: int = 0) -> Span:
    return Span(topic_id="A", partition=partition, start=start, end=end)


crowded = st.lists(
    st.builds(
        lambda start, length, partition: span(start, start + length, partition),
        st.integers(0, 8),
        st.integers(0, 6),
        st.integers(0, 1),
    ),
    max_size=6,
)


def offsets(runs: Iterable[Span]) -> set[tuple[TopicPartition, int]]:
    return {(run.key, offset) for run in runs for offset in range(run.start, run.end)}


def test_touching_and_overlapping_spans_become_one() -> None:
    runs = [span(5, 7), span(0, 3), span(3, 5), span(6, 9), span(11, 12), span(0, 1, partition=1)]
    assert merge_spans(runs) == (span(0, 9), span(11, 12), span(0, 1, partition=1))


def test_records_side_by_side_are_one_span() -> None:
    assert record_spans([("A", 0, 7), ("A", 0, 6), ("A", 0, 9)]) == (span(6, 8), span(9, 10))


@patiently
@given(st.lists(spans(offset_max=30)))
def test_merging_covers_exactly_the_same_offsets(runs: list[Span]) -> None:
    merged = merge_spans(runs)
    assert offsets(merged) == offsets(runs)
    assert all(
        left.key != right.key or (right.start or 0) > left.end for left, right in pairwise(merged)
    )
    assert merge_spans(merged) == merged


def test_covering_compares_only_what_is_wanted() -> None:
    assert covers({("A", 0): 5, ("A", 1): 0}, {("A", 0): 5})
    assert not covers({("A", 0): 5}, {("A", 0): 6})
    assert not covers({}, {("A", 0): 1})
    assert covers({}, {("A", 0): 0})


def test_topic_that_is_gone_is_behind_everybody() -> None:
    closed = {("A", 0): ENDLESS, ("B", 0): 5}
    assert topics_deleted_in(closed) == {"A"}
    assert covers(closed, {("A", 7): 9, ("B", 0): 5}, topics_deleted_in(closed))
    assert not covers(closed, {("A", 7): 9, ("B", 0): 6}, topics_deleted_in(closed))
    assert passes(closed, {("A", 7): 9, ("B", 0): 5})
    assert not passes(closed, {("A", 7): 9, ("B", 0): 6})


@patiently
@given(vectors, vectors)
def test_between_two_vectors_lies_what_only_the_second_covers(
    low: dict[TopicPartition, int], high: dict[TopicPartition, int]
) -> None:
    assert offsets(between(low, high)) == offsets(between({}, high)) - offsets(between({}, low))


@patiently
@given(vectors, crowded)
def test_beyond_a_vector_lies_what_it_does_not_cover(
    floor: dict[TopicPartition, int], runs: list[Span]
) -> None:
    assert offsets(beyond(runs, floor)) == offsets(runs) - offsets(between({}, floor))


@patiently
@given(crowded, crowded)
def test_spans_are_split_into_what_lies_in_others_and_what_does_not(
    runs: list[Span], others: list[Span]
) -> None:
    assert offsets(overlap(runs, merge_spans(others))) == offsets(runs) & offsets(others)
    assert offsets(without(runs, others)) == offsets(runs) - offsets(others)


def test_meeting_drops_what_one_side_has_not_begun() -> None:
    assert meet({("A", 0): 5, ("A", 1): 3}, {("A", 0): 4}) == {("A", 0): 4}


def test_ends_are_the_farthest_of_each_partition() -> None:
    assert ends([span(0, 3), span(5, 9), span(1, 2, partition=1)]) == {("A", 0): 9, ("A", 1): 2}


@patiently
@given(vectors, vectors, vectors)
def test_joining_is_a_join(
    a: dict[TopicPartition, int], b: dict[TopicPartition, int], c: dict[TopicPartition, int]
) -> None:
    assert join(a, b) == join(b, a)
    assert join(join(a, b), c) == join(a, join(b, c))
    assert join(a, a) == a
    assert covers(join(a, b), a)
    assert covers(a, meet(a, b))


@given(vectors, vectors, st.booleans())
def test_join_keeps_the_farther_offset_of_each_partition(
    left: Vector, right: Vector, same_places: bool
) -> None:
    if same_places:
        right = {place: right.get(place, 5) for place in left}
    before = [*left.items()], [*right.items()]
    farther = {p: max(left.get(p, 0), right.get(p, 0)) for p in left.keys() | right.keys()}
    assert join(left, right) == join(right, left) == farther
    assert before == ([*left.items()], [*right.items()])
