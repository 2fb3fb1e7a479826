"""Works out where each stage of a pipeline is in each partition that it reads. Pure.

What is not known is null, and `unknown` says why. So nobody takes a guess for a position.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from waybill_shared.contract.errors import ContractError, Refusal
from waybill_shared.contract.events import (
    InputDefinition,
    PipelineRecord,
    SinkDefinition,
    StageDefinition,
)
from waybill_shared.contract.moments import Moment
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.rewinds import StageRewind
from waybill_shared.contract.sink_positions import frontier_of, offset_in, position_of, state_of
from waybill_shared.contract.slots import Slot, key_of
from waybill_shared.contract.vectors import TopicPartition, Vector, topics_deleted_in
from waybill_shared.contract.words import UnknownReason
from waybill_status.core.outcomes.views import SlotReading, fault_of, usable_slot, view_of

TopicEnds = Mapping[int, int]
"""One past the last record of each partition."""
EndsById = Mapping[str, TopicEnds | ContractError]
"""The ends of topics, or why they are not known, by topic id."""

BASE: Final = "where the stage began: records below it are `lost`, `before_start`, for their tokens"
POSITION: Final = "where the next batch of the stage begins; null: unknown"
PENDING: Final = (
    "where the next run begins, if somebody has set that and no run has done it; null: nothing is"
    " set, or `position` is unknown"
)
FRONTIER: Final = (
    "below it every sink has each record, or it was set aside or is a dead letter; null: unknown"
)
END: Final = "one past the last record in Kafka now; null: unknown"
LAG: Final = "offsets from `position` to `end`, those of transaction markers too; null: unknown"
WHAT: Final = "position, frontier too | end"
TOPIC: Final = "null: all topics of the pipeline"
REASON: Final = "a reason of an unknown outcome | topic_recreated | not_available_now"

SENTENCES: Final[Mapping[UnknownReason, str]] = {
    UnknownReason.GENERATION_BEHIND: "the tracker has not read the present generation yet",
    UnknownReason.TRACKER_SILENT: "the tracker has confirmed nothing for 5 s",
}
"""Where the meaning of the reason speaks of a token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkFrontier:
    """The frontier of one sink of the stage in the partition."""

    name: str
    frontier: int | None = field(metadata={"description": "of this sink alone; null: unknown"})


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionOffsets:
    partition: int
    base: int = field(metadata={"description": BASE})
    position: int | None = field(metadata={"description": POSITION})
    pending: int | None = field(metadata={"description": PENDING})
    frontier: int | None = field(metadata={"description": FRONTIER})
    end: int | None = field(metadata={"description": END})
    lag: int | None = field(metadata={"description": LAG})
    sinks: tuple[SinkFrontier, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class InputOffsets:
    name: str
    topic: str
    topic_id: str
    partitions: tuple[PartitionOffsets, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StageOffsets:
    name: str
    inputs: tuple[InputOffsets, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownOffsets:
    """A reason why numbers are null."""

    what: str = field(metadata={"description": WHAT})
    topic: str | None = field(metadata={"description": TOPIC})
    reason: str = field(metadata={"description": REASON})
    detail: str
    hint: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineOffsets:
    """`unknown` has an entry for each reason why something is null; empty: all is known."""

    name: str
    uid: str
    generation: int
    at: Moment
    stages: tuple[StageOffsets, ...]
    unknown: tuple[UnknownOffsets, ...]


def offsets_of(
    record: PipelineRecord, reading: SlotReading | None, ends: EndsById, *, at: int
) -> PipelineOffsets:
    """Return the offsets. `reading` is None if Redis did not answer. `ends` were read after it, so
    that no lag is shown too small."""
    fault = _fault(record, reading)
    slot = usable_slot(reading) if fault is None else None
    stages = tuple(_stage(stage, slot, ends, record.rewinds) for stage in record.stages)
    unknown = [] if fault is None else [_unknown_positions(fault)]
    for source in (source for stage in stages for source in stage.inputs):
        unknown += _unknown_of(source, ends[source.topic_id], known=slot is not None)
    return PipelineOffsets(
        name=record.name,
        uid=record.pipeline_uid,
        generation=record.generation,
        at=at,
        stages=stages,
        unknown=tuple(dict.fromkeys(unknown)),  # two stages may read one topic
    )


def _fault(record: PipelineRecord, reading: SlotReading | None) -> UnknownReason | None:
    """Return why no position is known, if so."""
    view = view_of(reading)
    fault = fault_of(view, record.generation)
    if fault is None and not view.fresh:
        return UnknownReason.TRACKER_SILENT
    return fault


def _unknown_positions(fault: UnknownReason) -> UnknownOffsets:
    detail = SENTENCES.get(fault, fault.plain)
    return UnknownOffsets(what="position", topic=None, reason=fault, detail=detail, hint=None)


def _unknown_of(
    source: InputOffsets, found: TopicEnds | ContractError, *, known: bool
) -> Iterator[UnknownOffsets]:
    """Yield what is unknown of one topic. `known`: positions of the pipeline are."""
    sinks = (sink for each in source.partitions for sink in each.sinks)
    if known and any(sink.frontier is None for sink in sinks):
        detail = f"topic {source.topic} was deleted: nothing of it is read any more"
        yield _unknown("position", source, Slug.TOPIC_RECREATED, detail)
    if isinstance(found, Refusal):
        hint = str(found.members.get("hint", "")) or None
        yield _unknown("end", source, found.slug, found.detail, hint)
    elif isinstance(found, ContractError):
        yield _unknown("end", source, Slug.NOT_AVAILABLE_NOW, str(found))
    elif any(each.end is None for each in source.partitions):
        detail = f"topic {source.topic}: the broker did not name all partitions"
        yield _unknown("end", source, Slug.NOT_AVAILABLE_NOW, detail)


def _unknown(
    what: str, source: InputOffsets, slug: Slug, detail: str, hint: str | None = None
) -> UnknownOffsets:
    return UnknownOffsets(what=what, topic=source.topic, reason=slug, detail=detail, hint=hint)


@dataclass(frozen=True, slots=True)
class _SinkPosition:
    name: str
    position: Vector | None
    frontier: Vector | None
    gone: frozenset[str]
    """The deleted topics: all of them is passed, so no offset says anything."""
    rewind: int | None
    """The number of the newest rewind that was done here; None: the sink has not begun."""

    def position_at(self, place: TopicPartition) -> int | None:
        return self._offset(self.position, place)

    def frontier_at(self, place: TopicPartition) -> SinkFrontier:
        return SinkFrontier(name=self.name, frontier=self._offset(self.frontier, place))

    def has_done(self, rewind: StageRewind) -> bool:
        return (self.rewind or 0) >= rewind.number

    def start_after(self, rewind: StageRewind, place: TopicPartition) -> int | None:
        """Return where the next batch begins when this rewind is done here."""
        frontier, start = self._offset(self.frontier, place), rewind.starts[place]
        if self.has_done(rewind) or frontier is None:
            return self.position_at(place)
        return max(start, frontier) if rewind.forward else start

    def _offset(self, vector: Vector | None, place: TopicPartition) -> int | None:
        known = vector is not None and place[0] not in self.gone
        return offset_in(vector or {}, place) if known else None


def _stage(
    stage: StageDefinition, slot: Slot | None, ends: EndsById, rewinds: Iterable[StageRewind]
) -> StageOffsets:
    sinks = tuple(_sink(slot, stage, sink) for sink in stage.sinks)
    own = [each for each in rewinds if (each.stage, each.since) == (stage.name, stage.since)]
    pending = {place: start for each in own for place, start in _pending(each, sinks)}
    return StageOffsets(
        name=stage.name,
        inputs=tuple(
            _input(source, sinks, ends[source.topic_id], pending) for source in stage.inputs
        ),
    )


def _pending(
    rewind: StageRewind, sinks: tuple[_SinkPosition, ...]
) -> Iterator[tuple[TopicPartition, int]]:
    """Yield where the next run begins in the partitions of a rewind that a sink has not done. A
    sink that was added since, and has not begun, will begin where the others are.
    """
    begun = [sink for sink in sinks if sink.rewind is not None] or sinks
    if all(sink.has_done(rewind) for sink in begun):
        return
    for place in rewind.starts:
        starts = (sink.start_after(rewind, place) for sink in begun)
        known = [start for start in starts if start is not None]
        if known:
            yield place, min(known)


def _sink(slot: Slot | None, stage: StageDefinition, sink: SinkDefinition) -> _SinkPosition:
    if slot is None:
        return _SinkPosition(sink.name, None, None, frozenset(), None)
    frontier = frontier_of(slot, stage, sink)
    position = position_of(slot, stage, sink)
    gone = topics_deleted_in(frontier)
    has_begun = key_of(stage, sink) in slot.sinks
    rewind = state_of(slot, stage, sink).rewind if has_begun else None
    return _SinkPosition(sink.name, position, frontier, gone, rewind)


def _input(
    source: InputDefinition,
    sinks: tuple[_SinkPosition, ...],
    found: TopicEnds | ContractError,
    pending: Mapping[TopicPartition, int],
) -> InputOffsets:
    ends = {} if isinstance(found, ContractError) else found
    named = [(source.topic_id, partition) for partition in ends]
    places = {*source.bases, *named, *(place for sink in sinks for place in sink.position or ())}
    return InputOffsets(
        name=source.name,
        topic=source.topic,
        topic_id=source.topic_id,
        partitions=tuple(
            _partition(place, source, sinks, ends.get(place[1]), pending.get(place))
            for place in sorted(places)
            if place[0] == source.topic_id
        ),
    )


def _partition(
    place: TopicPartition,
    source: InputDefinition,
    sinks: tuple[_SinkPosition, ...],
    end: int | None,
    pending: int | None,
) -> PartitionOffsets:
    frontiers = tuple(sink.frontier_at(place) for sink in sinks)
    positions = (sink.position_at(place) for sink in sinks)
    position = min((each for each in positions if each is not None), default=None)
    known = (each.frontier for each in frontiers)
    return PartitionOffsets(
        partition=place[1],
        base=offset_in(source.bases, place),
        position=position,
        pending=pending,
        frontier=min((each for each in known if each is not None), default=None),
        end=end,
        lag=None if position is None or end is None else max(0, end - position),
        sinks=frontiers,
    )
