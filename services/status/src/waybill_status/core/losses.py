"""Decides what of a token will never be processed, and why. Pure.

The tracker says of each sink what never comes there, losses on the way included; so the required
sinks are enough, and what all of them have reached is never lost.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from waybill_shared.contract.vectors import (
    ENDLESS,
    Span,
    TopicPartition,
    Vector,
    beyond,
    gone_topics,
    merge_spans,
    overlap,
    without,
)
from waybill_shared.contract.words import LossReason
from waybill_status.core.judgements import LostSpan
from waybill_status.core.views import Loss, SinkLosses, View


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One span of a token, and where the last of the stages that must pass it began."""

    span: Span
    topic: str
    base: int


def losses(
    asked: Iterable[Asked],
    required: Sequence[str],
    removed: Sequence[str],
    view: View,
    *,
    ended: Sequence[tuple[LossReason, Sequence[str]]],
) -> Iterator[LostSpan]:
    """`required` are the keys of the sinks that must have all of it, `removed` those that once had
    to; `ended` is why nothing more will come to which of them. No offset comes twice."""
    for each in asked:
        empty = each.span.start == each.span.end
        told = (
            [] if empty else [*_before_start(each), *_set_aside(each, [*required, *removed], view)]
        )
        awaited = _below(each) if empty else each
        told += [(reason, _never(awaited, keys, view)) for reason, keys in ended if keys]
        if told:
            yield from _split_by_reason(awaited, told)


def _below(each: Asked) -> Asked:
    """An empty span asks for nothing but that its end is passed, by all that lies below."""
    return replace(each, span=_span(each.span, 0, each.span.end))


def left_of(span: Span, reached: Vector, lost: SinkLosses) -> tuple[Span, ...]:
    """What of `span` is still to come to a sink."""
    if span.end <= reached.get(span.key, 0):
        return ()
    never = (gone for _, gone in lost.of(span.key, reached))
    return without(beyond([span], reached), never)


def misses(span: Span, reached: Vector, lost: SinkLosses) -> bool:
    """Whether something of `span` never comes to a sink."""
    return any(overlap([span], [gone]) for _, gone in lost.of(span.key, reached))


def _before_start(each: Asked) -> Iterator[Loss]:
    if each.span.start < each.base:
        yield LossReason.BEFORE_START, _span(each.span, 0, each.base)


def _set_aside(each: Asked, required: Sequence[str], view: View) -> Iterator[Loss]:
    for key in required:
        yield from view.losses_of(key).of(each.span.key, view.reached.get(key, {}))


def _never(each: Asked, required: Sequence[str], view: View) -> Span:
    """What some required sink had not reached when the pipeline ended for the token."""
    arrived = min(_arrival(each.span.key, view.reached.get(key, {})) for key in required)
    return _span(each.span, max(each.span.start, arrived), each.span.end)


def _arrival(partition: TopicPartition, reached: Vector) -> int:
    """Nobody may have named this partition of a topic that is gone: it is passed all the same."""
    return ENDLESS if partition[0] in gone_topics(reached) else reached.get(partition, 0)


def _split_by_reason(each: Asked, told: Iterable[Loss]) -> Iterator[LostSpan]:
    """Each offset for the first reason that was told of it."""
    left: tuple[Span, ...] = (each.span,)
    found: dict[str, list[Span]] = {}
    for reason, gone in told:
        found.setdefault(reason, []).extend(overlap(left, [gone]))
        left = without(left, [gone])
    pieces = [(piece, reason) for reason, cut in found.items() for piece in merge_spans(cut)]
    for piece, reason in sorted(pieces):
        yield LostSpan(
            reason=reason,
            topic=each.topic,
            partition=piece.partition,
            start=piece.start,
            end=piece.end,
        )


def _span(span: Span, start: int, end: int) -> Span:
    return Span(topic_id=span.topic_id, partition=span.partition, start=start, end=end)
