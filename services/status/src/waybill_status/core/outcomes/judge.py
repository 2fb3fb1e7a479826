"""Decides the outcome of a token in one pipeline. Pure: all that is known is in a view.

1. `judge` receives a claim, which is the parts of the token in this pipeline, and the view. For the
   level `accepted`, or without offsets, the outcome is `complete` at once.
2. Each part is split by root topic, and each share is judged by itself. `unite` combines them, so a
   merged token says neither more nor less than its tokens did.
3. If nothing can be said for the token's generation, the outcome is `unknown` with the reason.
4. The required sinks are found: those that no stage reads, or those that are asked for by name.
   None is younger than the token. If there are none, earlier definitions are tried, the latest
   first.
5. `losses` works out which offsets never reach a required sink. If there are any, it is `lost`.
6. If `reached` of each required sink covers the ends of the share, it is `complete`.
7. Otherwise it is `in_progress`, or `unknown` if the tracker has not confirmed the slot lately.
8. It is also `unknown` while dead letters are missing that may concern the token.
9. A judgement names where dead letters of the token may be. If the caller finds some there,
   `judgements.dead_lettered` makes `dead_lettered` of `complete`.

Of several shares the first kind in `judgements.PRECEDENCE` counts.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from waybill_shared.contract.events import (
    Definition,
    SinkDefinition,
    StageDefinition,
    to_vector,
)
from waybill_shared.contract.slots import keys_of, sink_key, stage_key
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
from waybill_shared.contract.ways import descendants, is_root, named_sinks, towards
from waybill_shared.contract.words import LossReason, OutcomeKind, TokenLevel, UnknownReason
from waybill_status.core.outcomes.dead_letter_scope import limits_of
from waybill_status.core.outcomes.dead_letters import DeadAsked
from waybill_status.core.outcomes.judgements import Judgement, SinkJudgement, StageJudgement
from waybill_status.core.outcomes.losses import (
    Asked,
    left_of,
    losses,
    misses,
)
from waybill_status.core.outcomes.losses_by_generation import as_read
from waybill_status.core.outcomes.merging import unite
from waybill_status.core.outcomes.removed import asked_sinks, removals_since, removed_stages
from waybill_status.core.outcomes.views import PipelineKey, View, fault_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The parts of a token that belong to one pipeline; none if nothing of it was written there."""

    pipeline: PipelineKey
    name: str
    parts: tuple[Part, ...]
    asked: TokenView = WHOLE
    keys: frozenset[str] = frozenset()
    """Keys of the sinks that are asked for, if these are not all at the end, and not asked for by
    name."""
    beyond: bool = False
    """True if its pipeline follows the token's own in a `through` request."""


def pipelines_of(claims: Sequence[Claim]) -> list[PipelineKey]:
    """Return the pipelines that an answer depends on."""
    first = claims[0]
    legs = [(first.pipeline[0], leg.uid) for leg in first.asked.through]
    return [*(claim.pipeline for claim in claims), *legs]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Share:
    """The offsets of a part in one root topic. The topic id says which input that is, whatever its
    name."""

    generation: int
    topic_id: str
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """A share with what a definition says of its input."""

    spans: tuple[Span, ...]
    generation: int
    topic: str
    named: tuple[str, ...]  # sinks that are asked for by their keys, if not all at the end
    bases: Vector  # the farthest start of a stage of that generation; below it is lost
    stages: frozenset[str]


def judge(claim: Claim, view: View) -> Judgement:
    """Return the judgement of a claim, by what `view` knows. Called for each question and each
    change."""
    shares = [share for part in claim.parts for share in _shares(part)]
    if claim.asked.level == TokenLevel.ACCEPTED or not shares:
        return Judgement(
            pipeline=claim.pipeline,
            name=claim.name,
            kind=OutcomeKind.COMPLETE,
            named=frozenset(claim.asked.sinks),
            beyond=claim.beyond,
        )
    judgement = unite([_judge_share(claim, share, view) for share in shares])
    return replace(judgement, beyond=True) if claim.beyond else judgement


def unknown(claim: Claim, reason: UnknownReason) -> Judgement:
    """Return the judgement `unknown` with its reason."""
    kind = OutcomeKind.UNKNOWN
    return Judgement(pipeline=claim.pipeline, name=claim.name, kind=kind, reason=reason)


def _shares(part: Part) -> Iterator[_Share]:
    for topic_id, spans in groupby(sorted(part.spans), key=lambda span: span.topic_id):
        yield _Share(generation=part.generation, topic_id=topic_id, spans=tuple(spans))


def _judge_share(claim: Claim, share: _Share, view: View) -> Judgement:
    definition, fault = view.definition, fault_of(view, share.generation)
    if fault is not None or definition is None:
        return unknown(claim, fault or UnknownReason.NO_DEFINITION)
    if claim.asked.sinks or claim.keys:
        return _judge_named(claim, share, view, definition)
    removals = removals_since(share.generation, view)
    view = as_read(view, definition, removals, share.generation)
    found = _judge(claim, share, view, definition, ended=_ended_by(definition))
    for removal in reversed(removals):  # the last that left nothing to wait for
        if found is None:
            before = replace(definition, stages=(*definition.stages, *removal.stages))
            found = _judge(claim, share, view, before, ended=LossReason.SINK_REMOVED)
    return found or unknown(claim, UnknownReason.NOTHING_REQUIRED)


def _ended_by(definition: Definition) -> LossReason | None:
    return LossReason.PIPELINE_DELETED if definition.deleted else None


def _judge(
    claim: Claim, share: _Share, view: View, definition: Definition, *, ended: LossReason | None
) -> Judgement | None:
    """Return the judgement by `definition`; None if no sink in it is required. `ended`: why nothing
    more will arrive."""
    wanted = _wanted(share, definition, view)
    if wanted is None:
        return None
    stages = tuple(_stages(wanted, definition, view))
    required = [sink for stage in stages for sink in stage.sinks if sink.required]
    if not required:
        return None
    keys = [sink.key for sink in required]
    removals = removals_since(share.generation, view)
    removed = [  # their losses are still reported
        key for each in removals for key, _ in asked_sinks(each.stages, share.generation)
    ]
    over = [] if ended is None else [(ended, keys)]
    lost = tuple(losses(_ask(wanted), keys, removed, view, ended=over))
    kind = OutcomeKind.IN_PROGRESS
    if lost:
        kind = OutcomeKind.LOST
    elif all(sink.covered for sink in required):
        kind = OutcomeKind.COMPLETE
    elif not view.fresh:
        return unknown(claim, UnknownReason.TRACKER_SILENT)
    if kind != OutcomeKind.LOST and _misses_letters(share, view, kind):
        return unknown(claim, UnknownReason.DEAD_LETTERS_MISSING)
    return Judgement(
        pipeline=claim.pipeline,
        name=claim.name,
        kind=kind,
        stages=(*stages, *removed_stages(share.generation, share.topic_id, view, definition)),
        lost=lost,
        dead_asked=tuple(_ask_for_dead(wanted, keys, view)),
    )


def _judge_named(claim: Claim, share: _Share, view: View, definition: Definition) -> Judgement:
    """Judge only by the sinks of these names that existed when the token was issued. That includes
    a sink that was removed since: what it lacks then will never reach it."""
    removals = removals_since(share.generation, view)
    known = (*definition.stages, *(stage for each in removals for stage in each.stages))
    ways = named_sinks(known, share.topic_id, share.generation, claim.asked.sinks)
    found = {key: sink for key, sink in ways if not claim.keys or key in claim.keys}
    wanted = _wanted(share, replace(definition, stages=known), view, tuple(found))
    if not found or wanted is None:
        return unknown(claim, UnknownReason.NOTHING_REQUIRED)
    keys, present = [*found], keys_of(definition.stages)
    over = [(LossReason.SINK_REMOVED, [key for key in keys if key not in present])]
    if (ended := _ended_by(definition)) is not None:
        over.append((ended, [key for key in keys if key in present]))
    lost = tuple(losses(_ask(wanted), keys, [], view, ended=over))
    goal = ends(wanted.spans)
    kind = OutcomeKind.IN_PROGRESS
    if lost:
        kind = OutcomeKind.LOST
    elif all(passes(view.reached.get(key, {}), goal) for key in keys):
        kind = OutcomeKind.COMPLETE
    elif not view.fresh:
        return unknown(claim, UnknownReason.TRACKER_SILENT)
    missing = view.dead_missing & wanted.stages
    if kind == OutcomeKind.COMPLETE:
        missing &= {stage_key(stage) for each in removals for stage in each.stages}
    if missing and kind != OutcomeKind.LOST:
        return unknown(claim, UnknownReason.DEAD_LETTERS_MISSING)
    gone = removed_stages(share.generation, share.topic_id, view, definition)
    return Judgement(
        pipeline=claim.pipeline,
        name=claim.name,
        kind=kind,
        stages=(*_stages(wanted, definition, view), *gone),
        lost=lost,
        dead_asked=tuple(_ask_for_dead(wanted, keys, view, {s.name for s in found.values()})),
        named=frozenset(sink.name for sink in found.values()),
    )


def _misses_letters(share: _Share, view: View, kind: OutcomeKind) -> bool:
    """Return True if dead letters are missing that may concern the share. No sink moves while some
    are missing. So a required sink that has passed the token did so with all its dead letters.
    Stages that were removed since do not stop sinks from moving."""
    if kind == OutcomeKind.IN_PROGRESS:
        return bool(view.dead_missing)
    removals = removals_since(share.generation, view) if view.dead_missing else ()
    return any(stage_key(s) in view.dead_missing for each in removals for s in each.stages)


def _ask_for_dead(
    wanted: _Wanted, required: Collection[str], view: View, names: Collection[str] = ()
) -> Iterable[DeadAsked]:
    """Yield where dead letters of the share may be."""
    spans = tuple(span for span in wanted.spans if span.key in view.dead)
    if spans:
        limits = limits_of(wanted.generation, required, view, names)
        yield DeadAsked(topic=wanted.topic, spans=spans, limits=limits)


def _asked_of(stage: StageDefinition, generation: int) -> bool:
    """Return True if tokens of that generation know the stage. They never wait for a younger
    one."""
    return any(sink.since <= generation for sink in stage.sinks)


def _wanted(
    share: _Share, definition: Definition, view: View, named: tuple[str, ...] = ()
) -> _Wanted | None:
    """Return the share with its input; None if no stage reads it. `named`: the keys of sinks that
    are asked for, if not all at the end."""
    readers = [
        source
        for stage in definition.stages
        for source in stage.inputs
        if is_root(source, share.topic_id)
    ]
    if not readers:
        return None
    removed = [
        stage for removal in removals_since(share.generation, view) for stage in removal.stages
    ]
    stages, behind = [*definition.stages, *removed], descendants(definition.stages, share.topic_id)
    if named:
        stages = towards(named, stages, share.generation)
        behind = behind.intersection(map(stage_key, stages))
    return _Wanted(
        spans=share.spans,
        generation=share.generation,
        topic=readers[0].topic,
        named=named,
        bases=_bases_of(share, stages, view),
        stages=behind,
    )


def _bases_of(
    share: _Share, stages: Iterable[StageDefinition], view: View
) -> dict[TopicPartition, int]:
    """Return where the last stage started that the share waits for. One that was removed since
    still counts: what was written before it was reported as lost."""
    bases: dict[TopicPartition, int] = {}
    for stage in stages:
        for source in stage.inputs if _asked_of(stage, share.generation) else ():
            if is_root(source, share.topic_id):
                bases = join(bases, view.former.get(stage_key(stage), {}))
                bases = join(bases, to_vector(source.bases))
    return bases


def _ask(wanted: _Wanted) -> Iterable[Asked]:
    for span in wanted.spans:
        yield Asked(span=span, topic=wanted.topic, base=wanted.bases.get(span.key, 0))


def _stages(wanted: _Wanted, definition: Definition, view: View) -> Iterable[StageJudgement]:
    """Yield every stage that the share passes, with those sinks that are not younger than the
    token."""
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
    """Return the inputs of the share that this stage reads. A stage that reads other stages has
    none: its batches have other ends than the records that they write."""
    if not all(source.root for source in stage.inputs):
        return frozenset()
    topics = {span.topic_id for span in wanted.spans}
    return frozenset(i.name for i in stage.inputs if topics & {i.topic_id, *i.retired})


def _last(sink: SinkDefinition, generation: int, definition: Definition) -> bool:
    """Return True if for tokens of that generation no stage reads from this sink."""
    return not any(
        source.topic_id == sink.topic_id and _asked_of(stage, generation)
        for stage in definition.stages
        for source in stage.inputs
        if not source.root
    )


def _sink(
    wanted: _Wanted, stage: str, sink: SinkDefinition, view: View, definition: Definition
) -> SinkJudgement:
    """Judge one sink. `reached` starts at the bases of its own stage; bases of other stages do not
    count."""
    key = sink_key(stage, sink.name, sink.since)
    reached, lost = view.reached.get(key, {}), view.losses_of(key)
    goal = ends(wanted.spans)
    covered = passes(reached, goal)
    asked = key in wanted.named if wanted.named else _last(sink, wanted.generation, definition)
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
        versions_from=view.versions_from.get(key, 0),
        guarantee=sink.guarantee,
    )


def _begun(spans: Iterable[Span]) -> Vector:
    """Return the end of the first record of each partition."""
    begins = starts(span for span in spans if span.start < span.end)
    return {place: start + 1 for place, start in begins.items()}
