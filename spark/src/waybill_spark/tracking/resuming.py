"""Decides how a stage starts: with its checkpoint, or with a new one at the position of its fences.

Never does I/O.

Fences are what the sinks really contain, so a checkpoint that does not fit their positions is not
used. If sinks of one stage have different positions, each first gets exactly what it lacks.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from waybill_shared.contract.events import Fence, Range
from waybill_shared.contract.vectors import TopicPartition, Vector, join
from waybill_spark.tracking import fencing
from waybill_spark.tracking.checkpoint import Planned, TopicOffsets
from waybill_spark.tracking.fencing import Diverged, StageInput


@dataclass(frozen=True, slots=True, kw_only=True)
class ContinueCheckpoint:
    """Decision: Spark continues at the position of its checkpoint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartNewQuery:
    """A new checkpoint begins at `starts`, once each sink in `missing` has got its ranges."""

    starts: Vector
    missing: Mapping[str, tuple[Range, ...]]


def resume(
    inputs: tuple[StageInput, ...], planned: Planned | None, fences: Mapping[str, Fence | None]
) -> ContinueCheckpoint | StartNewQuery:
    """Decide how to start. `planned` is None when there is no checkpoint, or none that can be
    read.
    """
    if planned is not None and _fits(inputs, planned, fences):
        return ContinueCheckpoint()
    positions = {sink: position_of(inputs, fence) for sink, fence in fences.items()}
    starts: Vector = {}
    for position in positions.values():
        starts = join(starts, position)
    missing = {sink: _between(inputs, position, starts) for sink, position in positions.items()}
    return StartNewQuery(
        starts=starts, missing={sink: ranges for sink, ranges in missing.items() if ranges}
    )


def position_of(inputs: tuple[StageInput, ...], fence: Fence | None) -> dict[TopicPartition, int]:
    """Return where the next batch of a sink begins, for the topics as the stage reads them now."""
    position: Vector = fencing.bases_of(inputs)
    if fence is not None:
        position = join(position, fence.position)
    current = {source.topic_id for source in inputs}
    return {key: end for key, end in position.items() if key[0] in current}


def _fits(
    inputs: tuple[StageInput, ...], planned: Planned, fences: Mapping[str, Fence | None]
) -> bool:
    positions = [position_of(inputs, fence) for fence in fences.values()]
    starts, ends = _by_id(inputs, planned.starts), _by_id(inputs, planned.ends)
    if planned.committed:
        return all(_same(each, ends) for each in positions)
    if any(end < starts.get(key, 0) for key, end in ends.items()):
        return False  # Spark would try for ever to read backwards
    runs = fencing.batch_runs(inputs, planned.starts, planned.ends)
    if isinstance(fencing.decide(fences, runs, fencing.bases_of(inputs)), Diverged):
        return False
    return all(_same(each, ends) or _same(each, starts) for each in positions)


def _same(left: Vector, right: Vector) -> bool:
    """Return True if the vectors are the same. A partition that one of them lacks counts as 0."""
    return all(left.get(key, 0) == right.get(key, 0) for key in left.keys() | right.keys())


def _by_id(inputs: tuple[StageInput, ...], offsets: TopicOffsets) -> dict[TopicPartition, int]:
    return {
        (source.topic_id, partition): offset
        for source in inputs
        for partition, offset in offsets.get(source.topic, {}).items()
    }


def _between(inputs: tuple[StageInput, ...], low: Vector, high: Vector) -> tuple[Range, ...]:
    def by_name(vector: Vector) -> dict[str, dict[int, int]]:
        offsets: dict[str, dict[int, int]] = {}
        for source in inputs:
            mine = {p: end for (topic_id, p), end in vector.items() if topic_id == source.topic_id}
            offsets[source.topic] = mine
        return offsets

    return fencing.drop_empty(fencing.batch_runs(inputs, by_name(low), by_name(high)))
