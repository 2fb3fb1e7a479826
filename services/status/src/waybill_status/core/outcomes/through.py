"""Decides what a `through` request asks of the next pipelines, one hop after the other. Pure.

In the output of a batch the rows of a token are mixed with others. So the next pipeline is asked
for complete batches: from the step of a sink that read the first record to the step that read the
last. A stage that reads another stage is followed in the same manner: it read what that one wrote
for the token.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from waybill_shared.contract import vectors
from waybill_shared.contract.events import SinkDefinition
from waybill_shared.contract.slots import Progress
from waybill_shared.contract.token_views import WHOLE, ThroughStep, TokenView
from waybill_shared.contract.tokens import Part, pipeline_id
from waybill_shared.contract.topology import Topology, removals_since
from waybill_shared.contract.vectors import Span, TopicPartition, Vector
from waybill_shared.contract.words import OutcomeKind, UnknownReason
from waybill_status.core.outcomes.claims import Claim, unknown
from waybill_status.core.outcomes.judge import judge
from waybill_status.core.outcomes.judgements import Judgement
from waybill_status.core.outcomes.views import View, fault_of

SPANS_MAX: Final = 20  # of one partition, followed one by one


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkPath:
    """A path from spans of root topics to a sink, by its key, for tokens of that generation."""

    sink: str
    generation: int
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StageInputs:
    """The inputs of the stage of a sink: spans of roots, the output of other sinks, and the ids of
    all its topics."""

    spans: tuple[Span, ...]
    earlier: tuple[SinkPath, ...]
    topics: frozenset[str]


def judge_towards(
    step: ThroughStep, claim: Claim, here: View, there: View
) -> tuple[Judgement, Sequence[SinkPath]]:
    """Judge a claim by the sinks that lead to the next pipeline. Also return the paths that lead
    there."""
    faults = [
        fault_of(there, step.generation),
        *(fault_of(here, p.generation) for p in claim.parts),
    ]
    if (fault := next(filter(None, faults), None)) is not None:
        return unknown(claim, fault), ()
    paths: list[SinkPath] = []
    for part in claim.parts:
        found = _paths(step, claim.pipeline[1], part, here)
        if found is None:
            return unknown(claim, UnknownReason.NOTHING_REQUIRED), ()
        paths += found
    keys = frozenset(path.sink for path in paths)
    return judge(replace(claim, asked=WHOLE, keys=keys), here), paths


def stage_inputs(path: SinkPath, view: View) -> StageInputs:
    """Return what the stage at the end of a path reads."""
    topology = _topology(view, path.generation)
    spans: list[Span] = []
    earlier: list[SinkPath] = []
    topics: set[str] = set()
    for source in topology.by_key[path.sink].stage.inputs:
        topics |= source.ids
        if source.root:
            spans += [span for span in path.spans if span.topic_id in source.ids]
        writers = topology.at(path.generation).writers(source)
        earlier += [replace(path, sink=each.key) for each in writers]
    return StageInputs(spans=tuple(spans), earlier=tuple(earlier), topics=frozenset(topics))


def thin_out(spans: Iterable[Span]) -> Iterator[Span]:
    """Yield the spans of each partition one by one. Where there are many, yield one span from the
    first to the last."""
    places: dict[tuple[str, int], list[Span]] = {}
    for span in vectors.merge_spans(span for span in spans if span.start < span.end):
        places.setdefault(span.key, []).append(span)
    for each in places.values():
        whole = replace(each[0], end=each[-1].end)
        yield from each if len(each) <= SPANS_MAX else [whole]


def positions_read(step: Progress) -> Vector:
    """Return the positions that the stage had read up to."""
    return step.reached if step.taken is None else step.taken


def has_read(step: Progress, place: TopicPartition, end: int) -> bool:
    """Return True if the stage was that far, or past all of a deleted topic."""
    return vectors.passes(positions_read(step), {place: end})


def written(
    before: Progress | None, first: Progress, last: Progress, topics: Collection[str]
) -> tuple[Span, ...] | None:
    """Return where the rows are that a sink wrote with these steps and those between them; None if
    that is no longer known. `topics`: what its stage reads now."""
    earlier = {} if before is None else before.outputs
    if earlier is None or first.outputs is None or last.outputs is None:
        return None
    passed = {} if before is None else positions_read(before)
    if any(
        at[0] not in topics for at, end in positions_read(last).items() if end > passed.get(at, 0)
    ):
        return None  # it read something else then
    ends = last.outputs
    if not all(vectors.covers(ends, each) for each in (earlier, first.outputs)):
        return None  # its topic was created again meanwhile
    spans = vectors.between({**last.began, **earlier}, ends)
    return vectors.without(spans, (*first.gaps, *last.gaps))


def next_claim(step: ThroughStep, tenant: str, spans: Sequence[Span], asked: TokenView) -> Claim:
    """Return the claim to the next pipeline. It has no parts if nothing was written for it."""
    part = Part(
        pipeline_id=pipeline_id(tenant, step.uid),
        generation=step.generation,
        spans=vectors.merge_spans(spans),
        counted=False,
    )
    return Claim(
        pipeline=(tenant, step.uid),
        name=step.pipeline,
        parts=(part,) if spans else (),
        asked=TokenView(sinks=asked.sinks),
        beyond=True,
    )


def has_later_sink(step: ThroughStep, spans: Iterable[Span]) -> bool:
    """Return True if some sink of the next pipeline was added after some of the spans were
    written."""
    late = {each.key: each.end for each in step.late}
    return any(
        span.start < max(late.get(span.key, 0), late.get((span.topic_id, -1), 0)) for span in spans
    )


def not_yet(step: ThroughStep, tenant: str) -> Judgement:
    """Return the judgement that nothing of the token has arrived there, as far as is known."""
    return _of(step, tenant, OutcomeKind.IN_PROGRESS)


def not_known(step: ThroughStep, tenant: str, reason: UnknownReason) -> Judgement:
    """Return the judgement `unknown` for the next pipeline."""
    return replace(_of(step, tenant, OutcomeKind.UNKNOWN), reason=reason)


def _of(step: ThroughStep, tenant: str, kind: OutcomeKind) -> Judgement:
    return Judgement(pipeline=(tenant, step.uid), name=step.pipeline, kind=kind, beyond=True)


def _paths(step: ThroughStep, uid: str, part: Part, view: View) -> list[SinkPath] | None:
    """Return the paths; None if some of the part does not lead there any more, or never did."""
    topology = _topology(view, part.generation)
    known = topology.by_key
    found: list[SinkPath] = []
    for topic_id in sorted({span.topic_id for span in part.spans}):
        spans = tuple(span for span in part.spans if span.topic_id == topic_id)
        led = {each.sink for each in step.led_by if (each.uid, each.topic_id) == (uid, topic_id)}
        asked = {key for key in led & known.keys() if _is_asked(known[key].sink, part.generation)}
        named = {each.key for each in topology.awaited(topic_id, part.generation)}
        if not asked or not asked <= named:
            return None
        paths = (
            SinkPath(sink=key, generation=part.generation, spans=spans) for key in sorted(asked)
        )
        found += paths
    return found


def _is_asked(sink: SinkDefinition, generation: int) -> bool:
    return max(sink.since, sink.awaited_since) <= generation


def _topology(view: View, generation: int) -> Topology:
    """Return the sinks that exist, and those that existed since that generation."""
    present = Topology(() if view.definition is None else view.definition.stages)
    return present.with_removed(removals_since(view.removals, generation))
