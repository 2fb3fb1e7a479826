"""Cuts what is to be read into parts that are not too large. Never does I/O.

Parts follow one another, partition after partition: each begins where the one before has ended.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from waybill_shared.contract.events import Range
from waybill_shared.contract.vectors import TopicPartition, Vector

Ranges = tuple[Range, ...]
Place = tuple[str, int]
"""Topic, by its name, and partition."""


def offsets(ranges: Ranges) -> int:
    """Return the most records that `ranges` can contain."""
    return sum(run.end - run.start for run in ranges)


def ends_of(parts: Iterable[Ranges]) -> dict[TopicPartition, int]:
    """Return the end of the last range of each partition."""
    return {(run.topic_id, run.partition): run.end for ranges in parts for run in ranges}


def are_within(ranges: Ranges, others: Ranges) -> bool:
    """Return True if each range is in one of the others."""
    return all(
        any(
            (run.topic_id, run.partition) == (other.topic_id, other.partition)
            and other.start <= run.start
            and run.end <= other.end
            for other in others
        )
        for run in ranges
    )


def in_parts(ranges: Ranges, bounds: Iterable[Vector]) -> tuple[Ranges, ...]:
    """Cut ranges so that no part has offsets on both sides of one of these vectors."""
    parts: tuple[Ranges, ...] = (ranges,)
    for bound in bounds:
        cut = (side for part in parts for side in _sides(part, bound))
        parts = tuple(side for side in cut if side)
    return parts


def in_steps(ranges: Ranges, offsets_max: int) -> tuple[Ranges, ...]:
    """Cut ranges into parts of at most `offsets_max` offsets."""
    steps: list[Ranges] = []
    step: list[Range] = []
    room = offsets_max
    for run in ranges:
        start = run.start
        while start < run.end:
            end = min(run.end, start + room)
            step.append(replace(run, start=start, end=end))
            room -= end - start
            start = end
            if room == 0:
                steps.append(tuple(step))
                step, room = [], offsets_max
    return (*steps, tuple(step)) if step else tuple(steps)


def before(ranges: Ranges, record: tuple[str, int, int]) -> Ranges:
    """Return what is read before a record: its topic, its partition and its offset."""
    found: list[Range] = []
    for run in ranges:
        if (run.topic, run.partition) == record[:2]:
            found += [replace(run, end=record[2])] if run.start < record[2] else []
            break
        found.append(run)
    return tuple(found)


def has_all(position: Vector, ranges: Ranges) -> bool:
    """Return True if a position is past all of these ranges."""
    return all(position.get((run.topic_id, run.partition), 0) >= run.end for run in ranges)


def in_pieces(
    ranges: Ranges, sizes: Mapping[Place, Sequence[tuple[int, int]]], bytes_max: int
) -> tuple[Ranges, ...]:
    """Cut ranges into parts with at most `bytes_max` bytes of records in all, or with one record
    that alone has more. `sizes` has offset and bytes of each record; offsets without a size
    contain nothing.
    """
    pieces: list[Ranges] = []
    piece: list[Range] = []
    size_of_piece = 0
    for run in ranges:
        start = run.start
        for offset, size in sorted(sizes.get((run.topic, run.partition), ())):
            if size_of_piece and size_of_piece + size > bytes_max:
                if start < offset:
                    piece.append(replace(run, start=start, end=offset))
                pieces.append(tuple(piece))
                piece, size_of_piece, start = [], 0, offset
            size_of_piece += size
        piece.append(replace(run, start=start))
    return (*pieces, tuple(piece))


def _sides(ranges: Ranges, bound: Vector) -> Iterator[Ranges]:
    """Yield what is before `bound`, and what is after it."""
    ends = [min(run.end, bound.get((run.topic_id, run.partition), 0)) for run in ranges]
    pairs = tuple(zip(ranges, ends, strict=True))
    yield tuple(replace(run, end=end) for run, end in pairs if run.start < end)
    starts = ((run, max(run.start, end)) for run, end in pairs)
    yield tuple(replace(run, start=start) for run, start in starts if start < run.end)
