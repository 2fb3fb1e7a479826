"""Decides what a stage can never process: records of a deleted topic, or records that retention
removed. Never does I/O.

What is found is set aside: the frontier passes it, and its tokens end `lost`.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from waybill_shared.contract.events import Fence, Range, SetAside
from waybill_shared.contract.vectors import ENDLESS, Span, Vector, between, without
from waybill_shared.contract.words import LossReason
from waybill_spark.tracking.fencing import StageInput
from waybill_spark.tracking.stopping import StageStopped

REPLAYS: Final = "waybill.replays"
"""By its usual name, for people: the id is what counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicLook:
    """A topic as it is now: the id that belongs to the name, and the first offsets that it still
    has.
    """

    topic_id: str
    starts: Mapping[int, int]


Looks = Mapping[str, TopicLook]
"""By topic name; a topic that does not exist is absent."""


def find_losses(
    inputs: tuple[StageInput, ...], looks: Looks, frontier: Vector
) -> tuple[SetAside, ...]:
    """Return what a sink that has everything below `frontier` will never get any more."""
    found: defaultdict[LossReason, list[Range]] = defaultdict(list)
    for source in inputs:
        for topic_id in source.retired:
            found[LossReason.TOPIC_RECREATED] += _rest(source.topic, topic_id, frontier)
        reason = _find_reason(source, looks)
        if reason is not None:
            found[reason] += _rest(source.topic, source.topic_id, frontier)
        else:
            found[LossReason.RETENTION_PASSED] += _find_removed(source, looks, frontier)
    return tuple(aside for reason, ranges in found.items() for aside in _aside(reason, ranges))


def find_removed_again(
    inputs: tuple[StageInput, ...], looks: Looks, position: Vector, frontier: Vector
) -> Vector:
    """Return up to where a sink cannot read again what it has: retention removed that meanwhile."""
    found = {
        (run.topic_id, run.partition): run.end
        for source in inputs
        if _find_reason(source, looks) is None
        for run in _find_removed(source, looks, position)
    }
    ends = {place: min(end, frontier.get(place, 0)) for place, end in found.items()}
    return {place: end for place, end in ends.items() if position.get(place, 0) < end}


def find_before_start(
    inputs: tuple[StageInput, ...], bases: Vector, begin: Vector
) -> tuple[SetAside, ...]:
    """Return what a sink does not get because it started later than its stage."""
    ranges = tuple(
        Range(topic=i.topic, topic_id=topic_id, partition=partition, start=start, end=end)
        for i in inputs
        for (topic_id, partition), end in sorted(begin.items())
        if topic_id in i.ids and (start := bases.get((topic_id, partition), 0)) < end
    )
    return _aside(LossReason.BEFORE_START, ranges)


def find_lost_with_topic(
    inputs: tuple[StageInput, ...], bases: Vector, fence: Fence
) -> tuple[SetAside, ...]:
    """Set aside all that a sink contains, because its topic was deleted: what it read, and what was
    replayed into it.

    What was reported as present stays so.
    """
    names = {topic_id: i.topic for i in inputs for topic_id in i.ids}
    names |= {topic_id: REPLAYS for topic_id, _ in fence.replayed}
    aside = [
        Span(topic_id=r.topic_id, partition=r.partition, start=r.start, end=r.end)
        for each in fence.set_aside
        for r in each.ranges
    ]
    ranges = tuple(
        Range(
            topic=names[span.topic_id],
            topic_id=span.topic_id,
            partition=span.partition,
            start=span.start or 0,
            end=span.end,
        )
        for span in without(between(bases, {**fence.frontier, **fence.replayed}), aside)
        if span.topic_id in names
    )
    return _aside(LossReason.SINK_TOPIC_RECREATED, ranges)


def find_stop(
    inputs: tuple[StageInput, ...], looks: Looks, found: Iterable[SetAside]
) -> StageStopped | None:
    """Return why a stage must not simply continue after `found` was set aside; None if it may."""
    for source in inputs:
        reason = _find_reason(source, looks)
        if reason is not None:
            now = f"now it is {looks[source.topic].topic_id}" if source.topic in looks else "gone"
            detail = f"topic {source.topic} had id {source.topic_id}, {now}"
            hint = "restart the pipeline with --from earliest (or latest): it goes on there"
            return StageStopped(reason, detail, hint)
    passed = LossReason.RETENTION_PASSED
    removed = [r for each in found if each.reason == passed for r in each.ranges]
    if not removed:
        return None
    detail = "the topic no longer holds " + ", ".join(
        f"{r.topic}[{r.partition}] {r.start} to {r.end - 1}" for r in removed
    )
    hint = "their tokens say lost; start the pipeline to go on with what is left"
    return StageStopped(passed, detail, hint)


def union(before: Iterable[SetAside], more: Iterable[SetAside]) -> tuple[SetAside, ...]:
    """Return both, by reason, with touching ranges made one."""
    by_reason: dict[str, list[Range]] = {}
    for each in (*before, *more):
        by_reason.setdefault(each.reason, []).extend(each.ranges)
    return tuple(
        SetAside(reason=reason, ranges=tuple(_merge(ranges)))
        for reason, ranges in sorted(by_reason.items())
    )


def _aside(reason: LossReason, ranges: Iterable[Range]) -> tuple[SetAside, ...]:
    """Return the ranges with their reason; nothing if there are none."""
    found = tuple(ranges)
    return (SetAside(reason=reason, ranges=found),) if found else ()


def _find_reason(source: StageInput, looks: Looks) -> LossReason | None:
    look = looks.get(source.topic)
    if look is None:
        return LossReason.TOPIC_DELETED
    return LossReason.TOPIC_RECREATED if look.topic_id != source.topic_id else None


def _rest(topic: str, topic_id: str, frontier: Vector) -> Iterator[Range]:
    """Yield all further offsets of a deleted topic; partition 0 if none was ever read."""
    known = {partition: end for (of, partition), end in frontier.items() if of == topic_id} or {
        0: 0
    }
    for partition, end in sorted(known.items()):
        if end < ENDLESS:
            yield Range(topic=topic, topic_id=topic_id, partition=partition, start=end, end=ENDLESS)


def _find_removed(source: StageInput, looks: Looks, frontier: Vector) -> Iterator[Range]:
    for partition, start in sorted(looks[source.topic].starts.items()):
        end = frontier.get((source.topic_id, partition), 0)
        if end < start:
            yield Range(
                topic=source.topic,
                topic_id=source.topic_id,
                partition=partition,
                start=end,
                end=start,
            )


def _merge(ranges: Iterable[Range]) -> Iterator[Range]:
    def place(run: Range) -> tuple[str, str, int]:
        return (run.topic, run.topic_id, run.partition)

    ordered = sorted(ranges, key=lambda run: (*place(run), run.start))
    for (topic, topic_id, partition), runs in groupby(ordered, key=place):
        start = end = -1
        for run in runs:
            if run.start > end >= 0:
                yield Range(
                    topic=topic, topic_id=topic_id, partition=partition, start=start, end=end
                )
                start = -1
            start, end = (run.start, run.end) if start < 0 else (start, max(end, run.end))
        yield Range(topic=topic, topic_id=topic_id, partition=partition, start=start, end=end)
