"""Decides the outcome of a token in one pipeline. Pure: what is known comes in as a view.

Precedence is lost, in_progress, dead_lettered, complete. `complete` needs every required sink to
cover the token's ends; missing knowledge is `unknown`, whatever else holds. Each part is judged by
itself, so that a merged token says neither more nor less than its tokens did.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from shared.events import (
    Definition,
    InputDefinition,
    SinkDefinition,
    StageDefinition,
    to_vector,
)
from shared.slots import Removal, sink_key
from shared.tokens import Part
from shared.vectors import Span, TopicPartition, Vector, covers, ends, join
from status.core.losses import Asked, left_of, losses, misses, whole
from status.core.outcomes import Judgement, Kind, SinkJudgement, StageJudgement
from status.core.uniting import unite
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
    """A part beside what the slot's definition says of its input."""

    spans: tuple[Span, ...]
    generation: int
    source: InputDefinition
    bases: Vector  # the farthest at which a stage of that generation began; below it is lost
    floors: Vector  # the nearest; a span without a start begins there
    stages: frozenset[str]


def judge(claim: Claim, view: View) -> Judgement:
    return unite([_judge_part(claim, item, view) for item in claim.parts])


def _judge_part(claim: Claim, item: ClaimPart, view: View) -> Judgement:
    if view.fault is not None or view.definition is None:
        return _unknown(claim, view.fault or "no_definition")
    if item.part.generation > view.generation:
        return _unknown(claim, "generation_behind")
    found = _judge(claim, item, view, view.definition, ended=_ended_by(view.definition))
    for removal in reversed(_removals(item, view)):  # the last that left nothing to wait for
        if found is None:
            stages = (*view.definition.stages, *removal.stages)
            definition = replace(view.definition, stages=stages)
            found = _judge(claim, item, view, definition, ended="sink_removed")
    return found or _unknown(claim, "nothing_required")


def _removals(item: ClaimPart, view: View) -> list[Removal]:
    """What was taken away since the part was born; what was gone before never concerned it."""
    return [removal for removal in view.removals if removal.generation > item.part.generation]


def _ended_by(definition: Definition) -> str | None:
    return "pipeline_deleted" if definition.deleted else None


def _judge(
    claim: Claim, item: ClaimPart, view: View, definition: Definition, *, ended: str | None
) -> Judgement | None:
    """By `definition`; None if it has nothing that the part waits for. `ended`: why nothing more
    will come."""
    if _strange(item, definition):
        return _unknown(claim, "topic_not_known")
    wanted = _wanted(item, definition, view)
    if wanted is None:
        return None
    stages = tuple(_stages(wanted, definition, view))
    required = [sink for stage in stages for sink in stage.sinks if sink.required]
    if not required:
        return None
    keys = [sink.key for sink in required]
    lost = tuple(losses(_asked(wanted), keys, _removed_keys(item, view), view, ended=ended))
    kind = Kind.IN_PROGRESS
    if lost:
        kind = Kind.LOST
    elif all(sink.covered for sink in required):
        kind = Kind.COMPLETE
    elif not view.fresh:
        return _unknown(claim, "tracker_silent")
    return Judgement(
        pipeline=claim.pipeline,
        name=claim.name,
        kind=kind,
        stages=(*stages, *_removed_stages(item, view, definition)),
        lost=lost,
    )


def _unknown(claim: Claim, reason: str) -> Judgement:
    return Judgement(pipeline=claim.pipeline, name=claim.name, kind=Kind.UNKNOWN, reason=reason)


def _removed_keys(item: ClaimPart, view: View) -> list[str]:
    """Sinks that once were waited for: what was lost there stays told."""
    return [
        sink_key(stage.name, sink.name)
        for removal in _removals(item, view)
        for stage in removal.stages
        for sink in stage.sinks
        if sink.since <= item.part.generation
    ]


def _removed_stages(
    item: ClaimPart, view: View, definition: Definition
) -> Iterable[StageJudgement]:
    """What the part passed or would have passed, and the pipeline has no longer."""
    topics = {span.topic_id for span in item.part.spans}
    present = {sink_key(s.name, sink.name) for s in definition.stages for sink in s.sinks}
    for removal in _removals(item, view):
        for stage in removal.stages:
            keys = {sink.name: sink_key(stage.name, sink.name) for sink in stage.sinks}
            sinks = tuple(
                _removed_sink(keys[sink.name], sink)
                for sink in stage.sinks
                if sink.since <= item.part.generation and keys[sink.name] not in present
                if topics & {topic_id for topic_id, _ in view.reached.get(keys[sink.name], {})}
            )
            if sinks:
                yield StageJudgement(name=stage.name, blocked_by=None, sinks=sinks)


def _removed_sink(key: str, sink: SinkDefinition) -> SinkJudgement:
    return SinkJudgement(
        key=key,
        name=sink.name,
        required=False,
        wanted={},
        covered=False,
        vacuous=True,
        removed=True,
    )


def _readers(
    item: ClaimPart, definition: Definition
) -> list[tuple[StageDefinition, InputDefinition]]:
    """The stages that read the part's input, with that input."""
    return [
        (stage, source)
        for stage in definition.stages
        for source in stage.inputs
        if source.root and source.name == item.input_name
    ]


def _asked_of(stage: StageDefinition, item: ClaimPart) -> bool:
    """Tokens never wait for a stage that is younger than they are."""
    return any(sink.since <= item.part.generation for sink in stage.sinks)


def _strange(item: ClaimPart, definition: Definition) -> bool:
    """Whether the part names a topic id that a stage which must pass it has never read."""
    named = {span.topic_id for span in item.part.spans}
    return any(
        not named.issubset((source.topic_id, *source.retired))
        for stage, source in _readers(item, definition)
        if _asked_of(stage, item)
    )


def _wanted(item: ClaimPart, definition: Definition, view: View) -> _Wanted | None:
    readers = _readers(item, definition)
    if not readers:
        return None
    begun = [
        join(view.former.get(stage.name, {}), to_vector(source.bases))
        for stage, source in readers
        if _asked_of(stage, item)
    ]
    bases: dict[TopicPartition, int] = {}
    for each in begun:
        bases = join(bases, each)
    return _Wanted(
        spans=item.part.spans,
        generation=item.part.generation,
        source=readers[0][1],
        bases=bases,
        floors={place: min(each.get(place, 0) for each in begun) for place in bases},
        stages=descendants(definition, readers[0][1]),
    )


def _asked(wanted: _Wanted) -> Iterable[Asked]:
    for span in wanted.spans:
        yield Asked(
            span=span,
            topic=wanted.source.topic,
            base=wanted.bases.get(span.key, 0),
            floor=wanted.floors.get(span.key, 0),
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


def _stages(wanted: _Wanted, definition: Definition, view: View) -> Iterable[StageJudgement]:
    """Every stage on the way, with those sinks that are not younger than the part."""
    for stage in definition.stages:
        sinks = tuple(
            _sink(wanted, sink_key(stage.name, sink.name), sink, view, definition)
            for sink in stage.sinks
            if stage.name in wanted.stages and sink.since <= wanted.generation
        )
        if sinks:
            yield StageJudgement(name=stage.name, blocked_by=view.blocked_by, sinks=sinks)


def _last(sink: SinkDefinition, generation: int, definition: Definition) -> bool:
    """Whether for tokens of that generation no stage reads on from this sink."""
    return not any(
        source.topic_id == sink.topic_id and any(k.since <= generation for k in stage.sinks)
        for stage in definition.stages
        for source in stage.inputs
        if not source.root
    )


def _sink(
    wanted: _Wanted, key: str, sink: SinkDefinition, view: View, definition: Definition
) -> SinkJudgement:
    """`reached` begins at the bases of its own stage; those of another stage say nothing of it."""
    full = [whole(span, wanted.floors.get(span.key, 0)) for span in wanted.spans]
    reached, missing = view.reached.get(key, {}), view.missing_of(key)
    goal = ends(wanted.spans)
    return SinkJudgement(
        key=key,
        name=sink.name,
        required=_last(sink, wanted.generation, definition),
        wanted=goal,
        covered=covers(reached, goal),
        vacuous=covers(wanted.bases, goal),
        lost=any(misses(span, reached, missing) for span in full),
        coming=tuple(left for span in full for left in left_of(span, reached, missing)),
    )
