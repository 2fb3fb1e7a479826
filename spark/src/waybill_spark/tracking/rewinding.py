"""Decides where the next batch of a sink begins after a rewind. Never does I/O.

A rewind has a number, and each sink remembers the newest that was done in it. At the start of a
run, before any query, this happens for each stage that has rewinds with higher numbers:

1. The records of them that died before are read from the facts, and written to its journal again.
   So batches that come again leave them out, and nothing that a token called dead is written.
2. The fence of each sink is moved alone. Where the rewind begins before the frontier, the position
   goes back and the frontier stays. Where it begins after it, `find_skipped` sets aside what lies
   between, and both go there. A driver that fails between two sinks leaves the second one to the
   next start.
3. `resuming` finds that the checkpoint does not fit the positions, and moves it aside.
4. Batches that come again pass over what was set aside: `edges_of` cuts them there.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from waybill_shared.contract.events import Fence, Range, SetAside
from waybill_shared.contract.vectors import ENDLESS, TopicPartition, Vector, behind
from waybill_shared.contract.words import LossReason
from waybill_spark.tracking.fencing import StageInput
from waybill_spark.tracking.losses import union
from waybill_spark.tracking.pieces import Ranges, are_within


class Replacing(StrEnum):
    """The way in which a sink replaces rows."""

    BY_KEY = "by_key"
    BY_BATCH = "by_batch"  # each one erases the one before


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewind:
    """A rewind of a stage: partitions that `starts` does not name stay where they are. If it is
    `forward`, a sink that is beyond stays there, too.
    """

    number: int
    starts: Vector
    forward: bool = False


def joint_starts(rewinds: Iterable[Rewind], frontier: Vector) -> Vector:
    """Return where a sink begins after these rewinds, of which the newest is the last."""
    starts: dict[TopicPartition, int] = {}
    for rewind in rewinds:
        for place, start in rewind.starts.items():
            starts[place] = max(start, frontier.get(place, 0)) if rewind.forward else start
    return starts


def rewound_position(
    starts: Vector, *, bases: Vector, frontier: Vector
) -> dict[TopicPartition, int]:
    """Return where a sink begins again in the partitions of `starts`: not below its base, and not
    beyond its frontier.
    """
    return {
        place: min(max(start, bases.get(place, 0)), frontier[place])
        for place, start in starts.items()
        if frontier.get(place, ENDLESS) < ENDLESS  # nothing of a deleted topic comes again
    }


def find_skipped(
    inputs: Iterable[StageInput], starts: Vector, frontier: Vector
) -> tuple[SetAside, ...]:
    """Return what a sink never gets, because the rewind begins after it."""
    ranges = tuple(
        Range(topic=source.topic, topic_id=of, partition=partition, start=end, end=start)
        for source in inputs
        for (of, partition), start in sorted(starts.items())
        if of == source.topic_id and (end := frontier.get((of, partition), 0)) < start
    )
    return (SetAside(reason=LossReason.SKIPPED_BY_OPERATOR, ranges=ranges),) if ranges else ()


def rewound_fence(
    before: Fence | None,
    moved: Fence,
    starts: Vector,
    skipped: tuple[SetAside, ...],
    bases: Vector,
    *,
    reads_on: bool,
) -> Fence:
    """Return the fence after a rewind; `moved` has passed what is skipped. `reads_on`: what is to
    be read again by a rewind before is read again first, because older rows would stay otherwise.

    It keeps its generation, which says if the topic of the sink was created again since.
    """
    begins = rewound_position(starts, bases=bases, frontier=moved.frontier)
    if before is not None and reads_on:
        begins |= {at: min(begins.get(at, end), end) for at, end in before.rewound.items()}
    return replace(
        moved,
        generation=moved.generation if before is None else before.generation,
        rewound=behind({**moved.position, **begins}, moved.frontier),
        set_aside=union(moved.set_aside, skipped),
    )


def edges_of(fence: Fence | None) -> Iterator[Vector]:
    """Yield where to cut ranges so that no part is partly set aside in this sink."""
    for run in (run for each in (fence.set_aside if fence else ()) for run in each.ranges):
        for edge in (run.start, run.end):
            yield {(run.topic_id, run.partition): edge}


def is_set_aside(ranges: Ranges, fence: Fence | None) -> bool:
    """Return True if all of these ranges were set aside in this sink."""
    if fence is None or not ranges:
        return False
    return are_within(ranges, tuple(run for each in fence.set_aside for run in each.ranges))
