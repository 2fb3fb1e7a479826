"""What is too much at once is cut, and nothing of it is left out or taken twice."""

from hypothesis import given
from hypothesis import strategies as st

from builders import make_range
from strategies import patiently
from waybill_shared.contract.events import Range
from waybill_spark.tracking.pieces import Ranges, in_pieces, in_steps, offsets

TOPIC = make_range(0, 1).topic


def sized(sizes: dict[int, list[int]]) -> dict[tuple[str, int], list[tuple[int, int]]]:
    return {(TOPIC, partition): [*enumerate(found)] for partition, found in sizes.items()}


def bounds(parts: tuple[Ranges, ...]) -> list[list[tuple[int, int, int]]]:
    return [[(run.partition, run.start, run.end) for run in part] for part in parts]


def test_what_fits_is_one_piece() -> None:
    ranges = (make_range(0, 3), make_range(0, 2, partition=1))
    assert in_pieces(ranges, sized({0: [1, 1, 1], 1: [1, 1]}), 5) == (ranges,)
    assert in_steps(ranges, 5) == (ranges,)


def test_a_piece_ends_before_the_record_that_is_too_much() -> None:
    ranges = (make_range(0, 3), make_range(0, 2, partition=1))
    pieces = in_pieces(ranges, sized({0: [3, 3, 3], 1: [3, 3]}), 6)
    assert bounds(pieces) == [[(0, 0, 2)], [(0, 2, 3), (1, 0, 1)], [(1, 1, 2)]]


def test_a_record_that_is_larger_than_the_limit_goes_alone() -> None:
    pieces = in_pieces((make_range(0, 3),), sized({0: [1, 90, 1]}), 6)
    assert bounds(pieces) == [[(0, 0, 1)], [(0, 1, 2)], [(0, 2, 3)]]


def test_offsets_without_a_record_go_with_what_is_before_them() -> None:
    """Markers of transactions, and what compaction has removed."""
    sizes = {(TOPIC, 0): [(4, 5), (7, 5)]}
    assert bounds(in_pieces((make_range(0, 9),), sizes, 6)) == [[(0, 0, 7)], [(0, 7, 9)]]
    assert bounds(in_pieces((make_range(0, 9),), {}, 6)) == [[(0, 0, 9)]]


def test_steps_have_no_more_offsets_than_they_may() -> None:
    steps = in_steps((make_range(0, 5), make_range(0, 2, partition=1)), 3)
    assert bounds(steps) == [[(0, 0, 3)], [(0, 3, 5), (1, 0, 1)], [(1, 1, 2)]]
    assert in_steps((), 3) == ()


@patiently
@given(
    st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=6), min_size=1, max_size=3),
    st.integers(1, 12),
)
def test_every_offset_is_in_one_part_and_no_part_is_too_large(
    partitions: list[list[int]], limit: int
) -> None:
    sizes = sized(dict(enumerate(partitions)))
    ranges = tuple(make_range(0, len(p), partition=n) for n, p in enumerate(partitions))
    for parts in (in_pieces(ranges, sizes, limit), in_steps(ranges, limit)):
        taken = [place for part in parts for run in part for place in _places(run)]
        assert taken == [place for run in ranges for place in _places(run)]
        assert all(part for part in parts)
    for piece in in_pieces(ranges, sizes, limit):
        held = [partitions[p][offset] for run in piece for p, offset in _places(run)]
        assert sum(held) <= limit or len([size for size in held if size]) == 1
    assert all(offsets(step) <= limit for step in in_steps(ranges, limit))


def _places(run: Range) -> list[tuple[int, int]]:
    return [(run.partition, offset) for offset in range(run.start, run.end)]
