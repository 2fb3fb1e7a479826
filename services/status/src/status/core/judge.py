"""Decides the outcome of a token in one pipeline. Pure: what is known comes in as a view.

Precedence is lost, in_progress, dead_lettered, complete. `complete` needs every required sink to
cover the token's ends; missing knowledge is `unknown`, whatever else holds.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from shared.events import (
    Definition,
    InputDefinition,
    SinkDefinition,
    StageDefinition,
    to_vector,
)
from shared.slots import sink_key
from shared.tokens import Part
from shared.vectors import Span, TopicPartition, Vector, covers, ends, join
from status.core.outcomes import Judgement, Kind, Lost, SinkJudgement, StageJudgement
from status.core.views import PipelineKey, View


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimPart:
    input_name: str
    part: Part


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The parts of a token that belong to one pipeline."""

    pipeline: PipelineKey
    name: str
    parts: tuple[ClaimPart, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """A part next to what the slot's definition says of its input."""

    spans: tuple[Span, ...]
    generation: int
    source: InputDefinition
    bases: Vector  # the farthest at which a stage of that generation began; below it is lost
    stages: frozenset[str]


def judge(claim: Claim, view: View) -> Judgement:
    if view.fault is not None or view.definition is None:
        return _unknown(claim, view.fault or "no_definition")
    if any(item.part.generation > view.generation for item in claim.parts):
        return _unknown(claim, "generation_behind")
    wanted = [_wanted(item, view.definition) for item in claim.parts]
    known = [item for item in wanted if item is not None]
    stages = tuple(_stages(known, view.definition, view))
    required = [sink for stage in stages for sink in stage.sinks if sink.required]
    if len(known) < len(wanted) or not required:
        return _unknown(claim, "nothing_required")
    gone = list(_before_start(known))
    if view.definition.deleted:
        gone += _deleted(known, _arrived(required, view))
    lost = tuple(dict.fromkeys(gone))  # inputs may share a topic
    kind = Kind.IN_PROGRESS
    if lost:
        kind = Kind.LOST
    elif all(sink.covered for sink in required):
        kind = Kind.COMPLETE
    elif not view.fresh:
        return _unknown(claim, "tracker_silent")
    return Judgement(pipeline=claim.pipeline, name=claim.name, kind=kind, stages=stages, lost=lost)


def _unknown(claim: Claim, reason: str) -> Judgement:
    return Judgement(pipeline=claim.pipeline, name=claim.name, kind=Kind.UNKNOWN, reason=reason)


def _wanted(item: ClaimPart, definition: Definition) -> _Wanted | None:
    readers = [
        (stage, source)
        for stage in definition.stages
        for source in stage.inputs
        if source.root and source.name == item.input_name
    ]
    if not readers:
        return None
    generation = item.part.generation
    bases: dict[TopicPartition, int] = {}
    for stage, source in readers:
        if any(sink.since <= generation for sink in stage.sinks):
            bases = join(bases, to_vector(source.bases))
    return _Wanted(
        spans=item.part.spans,
        generation=generation,
        source=readers[0][1],
        bases=bases,
        stages=descendants(definition, readers[0][1]),
    )


def descendants(definition: Definition, source: InputDefinition) -> frozenset[str]:
    """The stages that what stands in root input `source` passes through, by any way."""
    found: set[str] = set()
    topics: set[str] = set()
    while reached := [
        s for s in definition.stages if s.name not in found and _reads(s, source, topics)
    ]:
        found |= {stage.name for stage in reached}
        topics |= {sink.topic_id for stage in reached for sink in stage.sinks if sink.topic_id}
    return frozenset(found)


def _reads(stage: StageDefinition, source: InputDefinition, topics: set[str]) -> bool:
    return any(i.name == source.name if i.root else i.topic_id in topics for i in stage.inputs)


def _stages(
    wanted: Sequence[_Wanted], definition: Definition, view: View
) -> Iterable[StageJudgement]:
    """Every stage on the way, with those sinks that are not younger than what asks for them."""
    for stage in definition.stages:
        mine = [item for item in wanted if stage.name in item.stages]
        sinks = tuple(
            _sink(asking, sink_key(stage.name, sink.name), sink, view)
            for sink in stage.sinks
            if (asking := [item for item in mine if sink.since <= item.generation])
        )
        if sinks:
            yield StageJudgement(name=stage.name, blocked_by=view.blocked_by, sinks=sinks)


def _sink(wanted: Sequence[_Wanted], key: str, sink: SinkDefinition, view: View) -> SinkJudgement:
    """`reached` begins at the bases of its own stage; those of another stage say nothing of it."""
    spans = {span for item in wanted for span in item.spans}
    bases = _bases(wanted)
    reached = view.reached.get(key, {})
    goal = ends(spans)
    return SinkJudgement(
        key=key,
        name=sink.name,
        required=sink.terminal,
        wanted=goal,
        covered=covers(reached, goal),
        vacuous=covers(bases, goal),
        behind=sum(_length(span, reached.get(span.key, 0), bases) for span in spans),
    )


def _bases(wanted: Iterable[_Wanted]) -> dict[TopicPartition, int]:
    return {key: offset for item in wanted for key, offset in item.bases.items()}


def _length(span: Span, reached: int, bases: Vector) -> int:
    """How much of the span lies beyond `reached`."""
    return max(0, span.end - max(_start(span, bases), reached))


def _start(span: Span, bases: Vector) -> int:
    return bases.get(span.key, 0) if span.start is None else span.start


def _before_start(wanted: Iterable[_Wanted]) -> Iterable[Lost]:
    for item in wanted:
        for span in item.spans:
            end = min(span.end, item.bases.get(span.key, 0))
            if span.start is not None and span.start < end:
                yield _lost("before_start", item, span, span.start, end)


def _arrived(required: Sequence[SinkJudgement], view: View) -> list[Vector]:
    return [view.reached.get(sink.key, {}) for sink in required]


def _deleted(wanted: Iterable[_Wanted], arrived: Sequence[Vector]) -> Iterable[Lost]:
    """What some required sink will never get."""
    for item in wanted:
        for span in item.spans:
            base = item.bases.get(span.key, 0)
            floor = max(base, min(vector.get(span.key, 0) for vector in arrived))
            start = max(_start(span, item.bases), floor)
            if start < span.end:
                yield _lost("pipeline_deleted", item, span, start, span.end)


def _lost(reason: str, item: _Wanted, span: Span, start: int, end: int) -> Lost:
    return Lost(
        reason=reason,
        topic=item.source.topic,
        partition=span.partition,
        start=start,
        end=end,
    )
