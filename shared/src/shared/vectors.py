"""Positions in Kafka and the arithmetic on them. Pure; knows no pipeline.

A vector maps (topic id, partition) to an end-exclusive offset. Offsets are compared, never counted:
transaction markers and compaction take offsets too.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

TopicPartition = tuple[str, int]
Vector = Mapping[TopicPartition, int]
ENDLESS: Final = 2**63 - 1
"""An end that no offset reaches: so far has whoever knows that a topic is gone."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Span:
    """A run of offsets [start, end) of one partition; `start` None means from the beginning."""

    topic_id: str
    partition: int
    start: int | None
    end: int

    @property
    def key(self) -> TopicPartition:
        return (self.topic_id, self.partition)


def covers(vector: Vector, wanted: Vector) -> bool:
    """Whether `vector` has come at least as far as `wanted` in every partition that it names."""
    return all(vector.get(key, 0) >= end for key, end in wanted.items())


def gone_topics(vector: Vector) -> frozenset[str]:
    """Ids of which nothing will ever come; partitions that `vector` does not name included."""
    return frozenset(topic_id for (topic_id, _), end in vector.items() if end == ENDLESS)


def join(left: Vector, right: Vector) -> dict[TopicPartition, int]:
    """The farther of the two, partition by partition."""
    return {key: max(left.get(key, 0), right.get(key, 0)) for key in left.keys() | right.keys()}


def meet(left: Vector, right: Vector) -> dict[TopicPartition, int]:
    """The nearer of the two; a partition that one of them lacks has not begun there."""
    return {key: min(left[key], right[key]) for key in left.keys() & right.keys()}


def ends(spans: Iterable[Span]) -> dict[TopicPartition, int]:
    """The vector up to which `spans` reach."""
    reached: dict[TopicPartition, int] = {}
    for span in spans:
        reached[span.key] = max(reached.get(span.key, 0), span.end)
    return reached


def merge_spans(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Sort and unite touching or overlapping spans; the result covers exactly the same offsets."""
    merged: list[Span] = []
    for span in sorted(spans, key=_order):
        last = merged[-1] if merged else None
        if last is not None and last.key == span.key and (span.start or 0) <= last.end:
            merged[-1] = Span(
                topic_id=last.topic_id,
                partition=last.partition,
                start=last.start,
                end=max(last.end, span.end),
            )
        else:
            merged.append(span)
    return tuple(merged)


def _order(span: Span) -> tuple[str, int, int, int]:
    """A span without a start comes first, so that what it is merged with has none either."""
    return (span.topic_id, span.partition, -1 if span.start is None else span.start, span.end)


def record_spans(positions: Iterable[tuple[str, int, int]]) -> tuple[Span, ...]:
    """Spans of single records given as (topic id, partition, offset)."""
    return merge_spans(
        Span(topic_id=topic_id, partition=partition, start=offset, end=offset + 1)
        for topic_id, partition, offset in positions
    )
