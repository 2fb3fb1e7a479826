"""Positions in Kafka and the arithmetic on them. Pure; knows no pipeline.

A vector maps (topic id, partition) to an end-exclusive offset. Offsets are compared, never counted:
transaction markers and compaction take offsets too.
"""

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Final

TopicPartition = tuple[str, int]
Vector = Mapping[TopicPartition, int]
ENDLESS: Final = 2**63 - 1
"""An end that no offset reaches. It means that all of a deleted topic is passed."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Span:
    """A run of offsets [start, end) of one partition."""

    topic_id: str
    partition: int
    start: int
    end: int

    @property
    def key(self) -> TopicPartition:
        return (self.topic_id, self.partition)


def covers(vector: Vector, wanted: Vector, gone: Set[str] = frozenset()) -> bool:
    """Return True if `vector` has reached `wanted` in every partition that `wanted` names.

    Topics in `gone`, which are deleted, count as reached.
    """
    return all(key[0] in gone or vector.get(key, 0) >= end for key, end in wanted.items())


def topics_deleted_in(vector: Vector) -> frozenset[str]:
    """Return the ids of deleted topics, from which nothing more arrives.

    This includes partitions that `vector` does not name.
    """
    return frozenset(topic_id for (topic_id, _), end in vector.items() if end == ENDLESS)


def passes(vector: Vector, wanted: Vector) -> bool:
    """Return True if `vector` covers `wanted`.

    If a topic is deleted for `vector`, all its partitions count as reached.
    """
    return covers(vector, wanted) or covers(vector, wanted, topics_deleted_in(vector))


def join(left: Vector, right: Vector) -> Vector:
    """Return the farther offset of the two for each partition.

    Mostly one of them is farther everywhere. Then it is returned as it is, without a copy, because
    a tracker calls this for each commit.
    """
    if len(left) == len(right):
        for key, end in right.items():
            if left.get(key, end + 1) > end:
                break
        else:
            return right
    ahead = {key: end for key, end in right.items() if left.get(key, -1) < end}
    return {**left, **ahead} if ahead else left


def behind(position: Vector, frontier: Vector) -> dict[TopicPartition, int]:
    """Return the part of `position` that is below `frontier`."""
    return {key: at for key, at in position.items() if at < frontier.get(key, 0)}


def meet(left: Vector, right: Vector) -> dict[TopicPartition, int]:
    """Return the nearer offset of the two for each partition.

    A partition that one of them lacks is left out.
    """
    return {key: min(left[key], right[key]) for key in left.keys() & right.keys()}


def nearer(left: Vector, right: Vector) -> dict[TopicPartition, int]:
    """Return the same as `meet`, but for a topic that is deleted for one of them, the offset of the
    other counts.
    """
    endless = [dict.fromkeys(topics_deleted_in(vector), ENDLESS) for vector in (left, right)]
    both = [
        {key: gone.get(key[0], vector.get(key, -1)) for key in left.keys() | right.keys()}
        for vector, gone in zip((left, right), endless, strict=True)
    ]
    least = {key: min(both[0][key], both[1][key]) for key in both[0]}
    return {key: end for key, end in least.items() if end >= 0}


def ends(spans: Iterable[Span]) -> dict[TopicPartition, int]:
    """Return the vector of the ends of `spans`."""
    reached: dict[TopicPartition, int] = {}
    for span in spans:
        reached[span.key] = max(reached.get(span.key, 0), span.end)
    return reached


def starts(spans: Iterable[Span]) -> dict[TopicPartition, int]:
    """Return the vector of the starts of `spans`."""
    begun: dict[TopicPartition, int] = {}
    for span in spans:
        begun[span.key] = min(begun.get(span.key, span.start), span.start)
    return begun


def merge_spans(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Sort and unite touching or overlapping spans; the result covers exactly the same offsets."""
    merged: list[Span] = []
    for span in sorted(spans):
        last = merged[-1] if merged else None
        if last is not None and last.key == span.key and span.start <= last.end:
            merged[-1] = Span(
                topic_id=last.topic_id,
                partition=last.partition,
                start=last.start,
                end=max(last.end, span.end),
            )
        else:
            merged.append(span)
    return tuple(merged)


def between(low: Vector, high: Vector) -> tuple[Span, ...]:
    """Return the spans from `low`, or from 0, up to `high`, in every partition that `high`
    names.
    """
    return tuple(
        Span(topic_id=key[0], partition=key[1], start=low.get(key, 0), end=end)
        for key, end in sorted(high.items())
        if low.get(key, 0) < end
    )


def beyond(spans: Iterable[Span], floor: Vector) -> tuple[Span, ...]:
    """Return the parts of `spans` at or after `floor`."""
    return tuple(
        cut for span in spans for cut in _cut(span, max(span.start, floor.get(span.key, 0)))
    )


def overlap(spans: Iterable[Span], others: Iterable[Span]) -> tuple[Span, ...]:
    """Return the parts of `spans` that lie in `others` too.

    The `others` must not overlap one another.
    """
    others = tuple(others)
    return tuple(
        cut
        for span in spans
        for other in others
        if other.key == span.key
        for cut in _cut(span, max(span.start, other.start), other.end)
    )


def without(spans: Iterable[Span], holes: Iterable[Span]) -> tuple[Span, ...]:
    """Return the parts of `spans` that do not lie in `holes`."""
    left = tuple(spans)
    for hole in holes:
        left = tuple(cut for span in left for cut in _outside(span, hole))
    return left


def _outside(span: Span, hole: Span) -> Iterator[Span]:
    if span.key != hole.key:
        yield span
        return
    yield from _cut(span, span.start, hole.start)
    yield from _cut(span, max(span.start, hole.end))


def _cut(span: Span, start: int, end: int = ENDLESS) -> Iterator[Span]:
    """Yield the part of `span` in [start, end), if there is one.

    `start` is not before that of `span`.
    """
    end = min(span.end, end)
    if start < end:
        yield Span(topic_id=span.topic_id, partition=span.partition, start=start, end=end)


def record_spans(positions: Iterable[tuple[str, int, int]]) -> tuple[Span, ...]:
    """Return the spans of single records given as (topic id, partition, offset)."""
    return merge_spans(
        Span(topic_id=topic_id, partition=partition, start=offset, end=offset + 1)
        for topic_id, partition, offset in positions
    )
