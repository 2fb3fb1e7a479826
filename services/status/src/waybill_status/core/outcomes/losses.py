"""Decides what of a token will never be processed, and why. Pure.

`judge` calls `losses` for the spans of one share. Each offset gets the first of these reasons:

1. It is below the base of a stage that must pass it: it was written before the start.
2. A required sink never gets it, or a sink that was required until it was removed. The tracker has
   worked this out for each sink; losses in earlier stages are included.
3. The pipeline was deleted, or the sink removed, before the sink had reached it.

So the required sinks are enough to look at. What all of them have reached is never lost. A span
without records only asks that its end is passed: reason 3 alone can apply, for all below its end.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from waybill_shared.contract.vectors import (
    ENDLESS,
    Span,
    TopicPartition,
    Vector,
    beyond,
    merge_spans,
    overlap,
    topics_deleted_in,
    without,
)
from waybill_shared.contract.words import LossReason
from waybill_status.core.outcomes.judgements import LostSpan
from waybill_status.core.outcomes.views import Loss, SinkLosses, View


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One span of a token, and where the last of the stages that must pass it started."""

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
    """Yield what is lost; no offset twice. `required` are the keys of the sinks that must have all
    of it. `removed` are those that once had to. `ended` says for which sinks nothing more will
    arrive, and why."""
    for each in asked:
        empty = each.span.start == each.span.end
        losses = (
            [] if empty else [*_before_start(each), *_set_aside(each, [*required, *removed], view)]
        )
        awaited = _below(each) if empty else each
        losses += [(reason, _never(awaited, keys, view)) for reason, keys in ended if keys]
        if losses:
            yield from _split_by_reason(awaited, losses)


def _below(each: Asked) -> Asked:
    """Return the span from 0 to its end. An empty span only asks that all below its end is
    passed."""
    return replace(each, span=_span(each.span, 0, each.span.end))


def rest_of(span: Span, reached: Vector, lost: SinkLosses) -> tuple[Span, ...]:
    """Return what of `span` is still to arrive in a sink."""
    if span.end <= reached.get(span.key, 0):
        return ()
    never = (lost_span for _, lost_span in lost.of(span.key, reached))
    return without(beyond([span], reached), never)


def misses(span: Span, reached: Vector, lost: SinkLosses) -> bool:
    """Return True if some of `span` never reaches a sink."""
    return any(overlap([span], [lost_span]) for _, lost_span in lost.of(span.key, reached))


def _before_start(each: Asked) -> Iterator[Loss]:
    if each.span.start < each.base:
        yield LossReason.BEFORE_START, _span(each.span, 0, each.base)


def _set_aside(each: Asked, required: Sequence[str], view: View) -> Iterator[Loss]:
    for key in required:
        yield from view.losses_of(key).of(each.span.key, view.reached.get(key, {}))


def _never(each: Asked, required: Sequence[str], view: View) -> Span:
    """Return what some required sink had not reached when the pipeline ended for the token."""
    arrived = min(_arrival(each.span.key, view.reached.get(key, {})) for key in required)
    return _span(each.span, max(each.span.start, arrived), each.span.end)


def _arrival(partition: TopicPartition, reached: Vector) -> int:
    """Return how far the sink is. It is past a deleted topic, even in a partition that nobody
    named."""
    return ENDLESS if partition[0] in topics_deleted_in(reached) else reached.get(partition, 0)


def _split_by_reason(each: Asked, losses: Iterable[Loss]) -> Iterator[LostSpan]:
    """Yield each offset with the first reason that was found for it."""
    left: tuple[Span, ...] = (each.span,)
    found: dict[str, list[Span]] = {}
    for reason, lost_span in losses:
        found.setdefault(reason, []).extend(overlap(left, [lost_span]))
        left = without(left, [lost_span])
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
