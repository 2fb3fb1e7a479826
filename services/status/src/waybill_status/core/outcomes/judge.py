"""Decides the outcome of a token in one pipeline. Pure: all that is known is in a view.

1. `judge` receives a claim, which is the parts of the token in this pipeline, and the view. For the
   level `accepted`, or without offsets, the outcome is `complete` at once.
2. Each part is split by root topic, and each share is judged by itself. `unite` combines them, so a
   merged token says neither more nor less than its tokens did.
3. If nothing can be said for the token's generation, the outcome is `unknown` with the reason.
   A share of a replay is judged in the same manner, by the sinks at or after those that it names.
4. The required sinks are found: those that are asked for by name, or those at the end, from which
   nothing leads on to another sink that the token waits for. None is younger than the token. If
   there are none, earlier definitions are tried, the latest first.
5. `losses` works out which offsets never reach a required sink. If there are any, it is `lost`.
6. If `reached` of each required sink covers the ends of the share, it is `complete`.
7. Otherwise it is `in_progress`, or `unknown` if the tracker has not confirmed the slot lately.
8. It is also `unknown` while dead letters are missing that may concern the token.
9. A judgement names where dead letters of the token may be. If the caller finds some there,
   `judgements.dead_lettered` makes `dead_lettered` of `complete`.

Of several shares the first kind in `judgements.PRECEDENCE` counts.
"""

from collections.abc import Collection, Container, Iterable
from dataclasses import replace
from itertools import chain, groupby

from waybill_shared.contract import vectors
from waybill_shared.contract.events import Definition
from waybill_shared.contract.slots import stage_key
from waybill_shared.contract.topology import (
    StageSink,
    Topology,
    names_by_key,
    removals_since,
    stages_of,
)
from waybill_shared.contract.vectors import Vector
from waybill_shared.contract.words import (
    LossReason,
    Obstacle,
    OutcomeKind,
    TokenLevel,
    UnknownReason,
)
from waybill_status.core.outcomes.claims import Claim, unknown
from waybill_status.core.outcomes.dead_letter_scope import limits_of
from waybill_status.core.outcomes.dead_letters import DeadAsked
from waybill_status.core.outcomes.decisive import Decisive, find_over
from waybill_status.core.outcomes.judgements import Judgement, SinkJudgement, StageJudgement
from waybill_status.core.outcomes.losses import Asked, losses, misses, rest_of
from waybill_status.core.outcomes.losses_by_generation import as_read
from waybill_status.core.outcomes.merging import unite
from waybill_status.core.outcomes.removed import judge_removed
from waybill_status.core.outcomes.replays import REPLAYS, decide, enter
from waybill_status.core.outcomes.shares import (
    PartShare,
    Wanted,
    drops_of,
    find_starts,
    names_of,
    shares_of,
)
from waybill_status.core.outcomes.views import View, fault_of


def judge(claim: Claim, view: View) -> Judgement:
    """Return the judgement of a claim, by what `view` knows. Called for each question and each
    change."""
    shares = [share for part in claim.parts for share in shares_of(part)]
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


def _judge_share(claim: Claim, share: PartShare, view: View) -> Judgement:
    definition, fault = view.definition, fault_of(view, share.generation)
    if fault is not None or definition is None:
        return unknown(claim, fault or UnknownReason.NO_DEFINITION)
    if share.into:
        return _judge_replay(claim, share, view, definition)
    if claim.asked.sinks or claim.keys:
        return _judge_named(claim, share, view, definition)
    topology = Topology(definition.stages)
    view = as_read(view, topology, share.generation)
    found = _judge(claim, share, view, topology, ended=_find_end(definition))
    removals = removals_since(view.removals, share.generation)
    for removal in reversed(removals):  # the last that left nothing to wait for
        if found is None:
            before = topology.with_removed([removal])
            found = _judge(claim, share, view, before, ended=LossReason.SINK_REMOVED)
    return found or unknown(claim, UnknownReason.NOTHING_REQUIRED)


def _find_end(definition: Definition) -> LossReason | None:
    return LossReason.PIPELINE_DELETED if definition.deleted else None


def _judge(
    claim: Claim, share: PartShare, view: View, topology: Topology, *, ended: LossReason | None
) -> Judgement | None:
    """Return the judgement by `topology`; None if no sink in it is required. `ended`: why nothing
    more will arrive."""
    wanted = _find_wanted(share, topology, view)
    if wanted is None:
        return None
    stages = tuple(_stages(wanted, topology, view))
    required = [sink for stage in stages for sink in stage.sinks if sink.required]
    if not required:
        return None
    keys = [sink.key for sink in required]
    removed = _find_removed(share, view)
    decisive = Decisive(
        keys=keys,
        reported=_find_reported(removed, share, removed.by_key),
        over=[] if ended is None else [(ended, keys)],
        covered=all(sink.covered for sink in required),
        dead_missing=view.dead_missing,
    )
    gone = judge_removed(share.generation, share.topic_id, view, topology)
    return _judge_by(decisive, claim, wanted, view, removed=removed, stages=(*stages, *gone))


def _judge_named(claim: Claim, share: PartShare, view: View, definition: Definition) -> Judgement:
    """Judge only by the sinks of these names that existed when the token was issued. That includes
    a sink that was removed since: what it lacks then will never reach it."""
    topology, removed = Topology(definition.stages), _find_removed(share, view)
    known = Topology((*topology.stages, *removed.stages))
    awaited = known.awaited(share.topic_id, share.generation, claim.sink_names)
    found = {w.key: w.sink for w in awaited if not claim.keys or w.key in claim.keys}
    wanted = _find_wanted(share, known, view, tuple(found))
    if not found or wanted is None:
        return unknown(claim, UnknownReason.NOTHING_REQUIRED)
    keys, goal = [*found], vectors.ends(wanted.spans)
    decisive = Decisive(
        keys=keys,
        names=names_of(found.values(), claim),
        over=find_over(keys, topology, ended=_find_end(definition)),
        covered=all(vectors.passes(view.reached.get(key, {}), goal) for key in keys),
        dead_missing=view.dead_missing & wanted.stages,
    )
    gone = judge_removed(share.generation, share.topic_id, view, topology)
    stages = (*_stages(wanted, topology, view), *gone)
    return _judge_by(decisive, claim, wanted, view, removed=removed, stages=stages)


def _judge_replay(claim: Claim, share: PartShare, view: View, definition: Definition) -> Judgement:
    """Judge by the sinks at or after those that the replay names: the last ones, or those that are
    asked for by name."""
    topology, removed = Topology(definition.stages), _find_removed(share, view)
    known = Topology((*topology.stages, *removed.stages)).at(share.generation)
    beyond = {each.key: each for each in known.beyond(share.into)}
    removals = removals_since(view.removals, share.generation)
    keys = decide(beyond.values(), topology, removals, share.generation, claim.sink_names)
    if not keys:
        return unknown(claim, UnknownReason.NOTHING_REQUIRED)
    if not claim.asked.sinks:
        view = as_read(view, topology, share.generation)
    spans = enter(share.spans, share.into, known)
    goal = vectors.ends(spans)
    wanted = Wanted(
        spans=spans,
        generation=share.generation,
        topic=REPLAYS,
        named=tuple(keys),
        bases={},
        stages=frozenset(stage_key(each.stage) for each in beyond.values()),
        beyond=frozenset(key for key in beyond if key in topology.by_key or key in keys),
    )
    decisive = Decisive(
        keys=keys,
        names=names_of([beyond[key].sink for key in keys if claim.asked.sinks], claim),
        reported=[] if claim.asked.sinks else _find_reported(removed, share, beyond),
        over=find_over(keys, topology, ended=_find_end(definition)),
        covered=all(vectors.passes(view.reached.get(key, {}), goal) for key in keys),
        dead_missing=view.dead_missing & wanted.stages,
    )
    on_the_way = wanted.stages & {stage_key(each) for each in known.towards(keys)}
    if view.failed & {known.by_stage[key].name for key in on_the_way}:
        view = replace(view, blocked_by=Obstacle.STAGE_FAILED)
    stages = tuple(_stages(wanted, known, view))
    return _judge_by(decisive, claim, wanted, view, removed=removed, stages=stages)


def _judge_by(
    decisive: "Decisive",
    claim: Claim,
    wanted: Wanted,
    view: View,
    *,
    removed: Topology,
    stages: tuple[StageJudgement, ...],
) -> Judgement:
    """Return the judgement by these sinks: lost, complete or in progress, or `unknown` if that
    cannot be said now."""
    keys = decisive.keys
    lost = tuple(losses(_ask(wanted), keys, decisive.reported, view, ended=decisive.over))
    kind = OutcomeKind.LOST if lost else OutcomeKind.IN_PROGRESS
    if not lost and decisive.covered:
        kind = OutcomeKind.COMPLETE
    if kind == OutcomeKind.IN_PROGRESS and not view.fresh:
        return unknown(claim, UnknownReason.TRACKER_SILENT)
    if not lost and decisive.misses_dead_letters(removed):
        return unknown(claim, UnknownReason.DEAD_LETTERS_MISSING)
    return Judgement(
        pipeline=claim.pipeline,
        name=claim.name,
        kind=kind,
        stages=stages,
        lost=lost,
        dead_asked=tuple(_ask_for_dead(wanted, keys, view, decisive.names)),
        named=decisive.names,
    )


def _find_removed(share: PartShare, view: View) -> Topology:
    """Return what was removed from the pipeline since the share was written."""
    return Topology(stages_of(removals_since(view.removals, share.generation)))


def _find_reported(removed: Topology, share: PartShare, among: Container[str]) -> list[str]:
    """Return the keys of removed sinks that the share waited for."""
    known = (each for each in removed.at(share.generation).sinks if each.key in among)
    return [each.key for each in known if each.sink.awaited_since <= share.generation]


def _ask_for_dead(
    wanted: Wanted, required: Collection[str], view: View, names: Collection[str] = ()
) -> Iterable[DeadAsked]:
    """Yield where dead letters of the share may be."""
    spans = tuple(span for span in wanted.spans if span.key in view.dead)
    if spans:
        limits = limits_of(wanted.generation, required, view, names)
        stages = () if view.definition is None else view.definition.stages
        names = names_by_key((*stages_of(view.removals), *stages))
        yield DeadAsked(topic=wanted.topic, spans=spans, limits=limits, names=names)


def _find_wanted(
    share: PartShare, topology: Topology, view: View, named: tuple[str, ...] = ()
) -> Wanted | None:
    """Return the share with its input; None if no stage reads it. `named`: the keys of sinks that
    are asked for, if not all at the end."""
    reader = next(topology.roots(share.topic_id), None)
    if reader is None:
        return None
    known = Topology((*topology.stages, *_find_removed(share, view).stages)).at(share.generation)
    passed = topology.descendants(share.topic_id)
    if named:
        known = Topology(known.towards(named))
        passed &= known.by_stage.keys()
    return Wanted(
        spans=share.spans,
        generation=share.generation,
        topic=reader[1].topic,
        named=named,
        bases=_bases_of(share, known, view),
        stages=passed,
    )


def _bases_of(share: PartShare, known: Topology, view: View) -> Vector:
    """Return where the last stage started that the share waits for. One that was removed since
    still counts: what was written before it was reported as lost."""
    bases: Vector = {}
    for stage, source in known.roots(share.topic_id):
        bases = vectors.join(bases, view.former.get(stage_key(stage), {}))
        bases = vectors.join(bases, source.bases)
    return bases


def _ask(wanted: Wanted) -> Iterable[Asked]:
    for span in wanted.spans:
        yield Asked(span=span, topic=wanted.topic, base=wanted.bases.get(span.key, 0))


def _stages(wanted: Wanted, topology: Topology, view: View) -> Iterable[StageJudgement]:
    """Yield every stage that the share passes, with those sinks that are not younger than the
    token."""
    known = topology.at(wanted.generation)
    for stage, found in groupby(known.sinks, key=lambda each: each.stage):
        if stage_key(stage) in wanted.stages:
            mine = (each for each in found if not wanted.beyond or each.key in wanted.beyond)
            sinks = tuple(_sink(wanted, each, view, known) for each in mine)
            if not sinks:
                continue  # those that a replay names were removed
            waits = (sink.wait for sink in sinks if sink.wait is not None)
            by = next((wait.blocked_by for wait in waits), view.blocked_by)
            by = Obstacle.STAGE_FAILED if stage.name in view.failed else by
            drops = drops_of(stage, wanted)
            yield StageJudgement(
                name=stage.name,
                blocked_by=by,
                sinks=sinks,
                drops_of=drops,
                next_run_at=view.next_run_at,
            )


def _sink(wanted: Wanted, judged: StageSink, view: View, known: Topology) -> SinkJudgement:
    """Judge one sink. `reached` starts at the bases of its own stage; bases of other stages do not
    count. `known`: the stages and sinks that the token knows."""
    key, sink = judged.key, judged.sink
    reached, lost = view.reached.get(key, {}), view.losses_of(key)
    goal = vectors.ends(wanted.spans)
    covered = vectors.passes(reached, goal)
    over = view.definition is not None and view.definition.deleted
    left = (rest_of(span, reached, lost) for span in wanted.spans if not over)
    ends = not known.leads_on(sink, wanted.generation)
    asked = key in wanted.named if wanted.named else ends
    return SinkJudgement(
        key=key,
        name=sink.name,
        required=asked and sink.awaited_since <= wanted.generation,
        begun=find_starts(wanted.spans),
        wanted=goal,
        covered=covered,
        vacuous=vectors.covers(wanted.bases, goal),
        lost=(over and not covered) or any(misses(span, reached, lost) for span in wanted.spans),
        coming=tuple(chain.from_iterable(left)),
        wait=None if covered else view.wait_of(judged.stage.name, sink.name),
        versions_from=view.versions_from.get(key, 0),
        guarantee=sink.guarantee,
    )
