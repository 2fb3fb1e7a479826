"""Decides the outcome of a token in one pipeline. Pure: what is known comes in as a view.

Precedence is lost, in_progress, dead_lettered, complete. `complete` needs every required sink to
cover the token's ends; missing knowledge is `unknown`, whatever else holds. Each part is judged by
itself, so that a merged token says neither more nor less than its tokens did.

What of it is in dead-letter topics stands beside the view: a judgement says where to look for it,
and `waybill_status.core.judgements.dead_lettered` what comes of what is found.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from waybill_shared.contract.events import (
    Definition,
    InputDefinition,
    SinkDefinition,
    StageDefinition,
    to_vector,
)
from waybill_shared.contract.slots import sink_key, stage_key
from waybill_shared.contract.token_views import WHOLE, TokenView
from waybill_shared.contract.tokens import Part
from waybill_shared.contract.vectors import (
    Span,
    TopicPartition,
    Vector,
    covers,
    ends,
    join,
    passes,
    starts,
)
from waybill_shared.contract.words import LossReason, OutcomeKind, TokenLevel, UnknownReason
from waybill_status.core.concerns import limits_of
from waybill_status.core.dead import DeadAsked
from waybill_status.core.judgements import Judgement, SinkJudgement, StageJudgement
from waybill_status.core.losses import (
    Asked,
    left_of,
    losses,
    misses,
)
from waybill_status.core.readers import as_read
from waybill_status.core.removed import asked_sinks, removals_since, removed_stages
from waybill_status.core.uniting import unite
from waybill_status.core.views import PipelineKey, View


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The parts of a token that belong to one pipeline."""

    pipeline: PipelineKey
    name: str
    parts: tuple[Part, ...]
    asked: TokenView = WHOLE


@dataclass(frozen=True, slots=True, kw_only=True)
class _Share:
    """What a part asks of one root topic. Its id says which input that is, whatever its name."""

    generation: int
    topic_id: str
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """A share beside what a definition says of its input."""

    spans: tuple[Span, ...]
    generation: int
    topic: str
    sinks: tuple[str, ...]  # that are asked for, if not all
    bases: Vector  # the farthest at which a stage of that generation began; below it is lost
    stages: frozenset[str]


def judge(claim: Claim, view: View) -> Judgement:
    """`nothing_required` if the pipeline has nothing of what is asked for, and had nothing of it
    since the token was born."""
    if claim.asked.level == TokenLevel.ACCEPTED:
        return Judgement(pipeline=claim.pipeline, name=claim.name, kind=OutcomeKind.COMPLETE)
    shares = [share for part in claim.parts for share in _shares(part)]
    judged = [_judge_share(claim, share, view) for share in shares]
    known = [each for each in judged if each is not None]
    return unite(known) if known else _unknown(claim, UnknownReason.NOTHING_REQUIRED)


def _shares(part: Part) -> Iterator[_Share]:
    for topic_id, spans in groupby(sorted(part.spans), key=lambda span: span.topic_id):
        yield _Share(generation=part.generation, topic_id=topic_id, spans=tuple(spans))


def _judge_share(claim: Claim, share: _Share, view: View) -> Judgement | None:
    definition = view.definition
    if view.fault is not None or definition is None:
        return _unknown(claim, view.fault or UnknownReason.NO_DEFINITION)
    if share.generation > view.generation:
        return _unknown(claim, UnknownReason.GENERATION_BEHIND)
    removals = removals_since(share.generation, view)
    view = as_read(view, definition, removals, share.generation)
    found = _judge(claim, share, view, definition, ended=_ended_by(definition))
    for removal in reversed(removals):  # the last that left nothing to wait for
        if found is None:
            before = replace(definition, stages=(*definition.stages, *removal.stages))
            found = _judge(claim, share, view, before, ended=LossReason.SINK_REMOVED)
    if found is None and not claim.asked.sinks:
        return _unknown(claim, UnknownReason.NOTHING_REQUIRED)
    return found


def _ended_by(definition: Definition) -> LossReason | None:
    return LossReason.PIPELINE_DELETED if definition.deleted else None


def _judge(
    claim: Claim, share: _Share, view: View, definition: Definition, *, ended: LossReason | None
) -> Judgement | None:
    """By `definition`; None if it has nothing that the share waits for. `ended`: why nothing more
    will come."""
    wanted = _wanted(share, definition, view, claim.asked.sinks)
    if wanted is None:
        return None
    stages = tuple(_stages(wanted, definition, view))
    required = [sink for stage in stages for sink in stage.sinks if sink.required]
    if not required:
        return None
    keys = [sink.key for sink in required]
    removals = removals_since(share.generation, view)
    removed = [  # whose losses stay told
        key
        for each in removals
        for key, sink in asked_sinks(each.stages, share.generation)
        if not wanted.sinks or sink.name in wanted.sinks
    ]
    lost = tuple(losses(_ask(wanted), keys, removed, view, ended=ended))
    kind = OutcomeKind.IN_PROGRESS
    if lost:
        kind = OutcomeKind.LOST
    elif all(sink.covered for sink in required):
        kind = OutcomeKind.COMPLETE
    elif not view.fresh:
        return _unknown(claim, UnknownReason.TRACKER_SILENT)
    if kind != OutcomeKind.LOST and _misses_letters(share, view, kind):
        return _unknown(claim, UnknownReason.DEAD_LETTERS_MISSING)
    return Judgement(
        pipeline=claim.pipeline,
        name=claim.name,
        kind=kind,
        stages=(*stages, *removed_stages(share.generation, share.topic_id, view, definition)),
        lost=lost,
        dead_asked=tuple(_ask_for_dead(wanted, keys, view)),
    )


def _unknown(claim: Claim, reason: UnknownReason) -> Judgement:
    unknown = OutcomeKind.UNKNOWN
    return Judgement(pipeline=claim.pipeline, name=claim.name, kind=unknown, reason=reason)


def _misses_letters(share: _Share, view: View, kind: OutcomeKind) -> bool:
    """Nobody moves while something is missing, so what is waited for and has passed the token did
    so with all that died before it. Stages that were removed since hold nobody back."""
    if kind == OutcomeKind.IN_PROGRESS:
        return bool(view.dead_missing)
    removals = removals_since(share.generation, view) if view.dead_missing else ()
    return any(stage_key(s) in view.dead_missing for each in removals for s in each.stages)


def _ask_for_dead(wanted: _Wanted, required: Collection[str], view: View) -> Iterable[DeadAsked]:
    spans = tuple(span for span in wanted.spans if span.key in view.dead)
    if spans:
        limits = limits_of(wanted.generation, required, view)
        yield DeadAsked(topic=wanted.topic, spans=spans, limits=limits)


def _asked_of(stage: StageDefinition, generation: int) -> bool:
    """Tokens never wait for a stage that is younger than they are."""
    return any(sink.since <= generation for sink in stage.sinks)


def _wanted(
    share: _Share, definition: Definition, view: View, sinks: tuple[str, ...]
) -> _Wanted | None:
    readers = [
        source
        for stage in definition.stages
        for source in stage.inputs
        if _is_root(source, share.topic_id)
    ]
    if not readers:
        return None
    removed = [
        stage for removal in removals_since(share.generation, view) for stage in removal.stages
    ]
    return _Wanted(
        spans=share.spans,
        generation=share.generation,
        topic=readers[0].topic,
        sinks=sinks,
        bases=_bases_of(share, _towards(sinks, [*definition.stages, *removed]), view),
        stages=_descendants(definition, share.topic_id),
    )


def _towards(sinks: Sequence[str], stages: Sequence[StageDefinition]) -> Sequence[StageDefinition]:
    """The stages on a way to one of these sinks; all, if none is named."""
    if not sinks:
        return stages
    found = [stage for stage in stages if any(sink.name in sinks for sink in stage.sinks)]
    while True:
        inner = [source for stage in found for source in stage.inputs if not source.root]
        read = {each for source in inner for each in (source.topic_id, *source.retired)} - {None}
        more = [s for s in stages if s not in found and any(k.topic_id in read for k in s.sinks)]
        if not more:
            return found
        found += more


def _bases_of(
    share: _Share, stages: Iterable[StageDefinition], view: View
) -> dict[TopicPartition, int]:
    """Where the last of these stages began that the share was asked of. One that was removed since
    still counts: what came before it was told lost."""
    bases: dict[TopicPartition, int] = {}
    for stage in stages:
        for source in stage.inputs if _asked_of(stage, share.generation) else ():
            if _is_root(source, share.topic_id):
                bases = join(bases, view.former.get(stage_key(stage), {}))
                bases = join(bases, to_vector(source.bases))
    return bases


def _is_root(source: InputDefinition, topic_id: str) -> bool:
    return source.root and topic_id in (source.topic_id, *source.retired)


def _ask(wanted: _Wanted) -> Iterable[Asked]:
    for span in wanted.spans:
        yield Asked(span=span, topic=wanted.topic, base=wanted.bases.get(span.key, 0))


def _descendants(definition: Definition, topic_id: str) -> frozenset[str]:
    """The stages that what stands in a root topic passes through, by any way."""
    found: set[str] = set()
    topics: set[str] = set()
    while reached := [
        stage
        for stage in definition.stages
        if stage_key(stage) not in found and _reads(stage, topic_id, topics)
    ]:
        found |= {stage_key(stage) for stage in reached}
        topics |= {sink.topic_id for stage in reached for sink in stage.sinks if sink.topic_id}
    return frozenset(found)


def _reads(stage: StageDefinition, topic_id: str, topics: set[str]) -> bool:
    return any(
        _is_root(source, topic_id) or (not source.root and source.topic_id in topics)
        for source in stage.inputs
    )


def _stages(wanted: _Wanted, definition: Definition, view: View) -> Iterable[StageJudgement]:
    """Every stage on the way, with those sinks that are not younger than the token."""
    for stage in definition.stages:
        sinks = tuple(
            _sink(wanted, stage.name, sink, view, definition)
            for sink in stage.sinks
            if stage_key(stage) in wanted.stages and sink.since <= wanted.generation
        )
        if sinks:
            waits = (sink.wait for sink in sinks if sink.wait is not None)
            by = next((wait.blocked_by for wait in waits), view.blocked_by)
            drops_of = _drops_of(stage, wanted)
            yield StageJudgement(name=stage.name, blocked_by=by, sinks=sinks, drops_of=drops_of)


def _drops_of(stage: StageDefinition, wanted: _Wanted) -> frozenset[str]:
    """Of a stage behind another one none: its batches end elsewhere than what they bring."""
    if not all(source.root for source in stage.inputs):
        return frozenset()
    topics = {span.topic_id for span in wanted.spans}
    return frozenset(i.name for i in stage.inputs if topics & {i.topic_id, *i.retired})


def _last(sink: SinkDefinition, generation: int, definition: Definition) -> bool:
    """Whether for tokens of that generation no stage reads on from this sink."""
    return not any(
        source.topic_id == sink.topic_id and _asked_of(stage, generation)
        for stage in definition.stages
        for source in stage.inputs
        if not source.root
    )


def _sink(
    wanted: _Wanted, stage: str, sink: SinkDefinition, view: View, definition: Definition
) -> SinkJudgement:
    """`reached` begins at the bases of its own stage; those of another stage say nothing of it."""
    key = sink_key(stage, sink.name, sink.since)
    reached, lost = view.reached.get(key, {}), view.losses_of(key)
    goal = ends(wanted.spans)
    covered = passes(reached, goal)
    named = sink.name in wanted.sinks
    asked = named if wanted.sinks else _last(sink, wanted.generation, definition)
    return SinkJudgement(
        key=key,
        name=sink.name,
        required=asked and sink.awaited_since <= wanted.generation,
        begun=_begun(wanted.spans),
        wanted=goal,
        covered=covered,
        vacuous=covers(wanted.bases, goal),
        lost=any(misses(span, reached, lost) for span in wanted.spans),
        coming=tuple(left for span in wanted.spans for left in left_of(span, reached, lost)),
        wait=None if covered else view.wait_of(stage, sink.name),
    )


def _begun(spans: Iterable[Span]) -> Vector:
    """Up to the first record of each partition."""
    begins = starts(span for span in spans if span.start < span.end)
    return {place: start + 1 for place, start in begins.items()}
