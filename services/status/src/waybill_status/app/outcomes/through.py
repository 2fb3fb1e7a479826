"""Follows a token into the pipelines that a `through` request names: judges each, and finds where
the batches of one wrote its rows for the next."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.token_views import ThroughStep
from waybill_shared.contract.vectors import Span, merge_spans
from waybill_shared.contract.words import OutcomeKind, UnknownReason
from waybill_status.app.outcomes.dead_letters import NotKnown
from waybill_status.app.outcomes.history import first_step, is_behind, slot_was_lost
from waybill_status.app.ports import SlotViews
from waybill_status.core.outcomes import through
from waybill_status.core.outcomes.claims import Claim
from waybill_status.core.outcomes.judgements import Judgement
from waybill_status.core.outcomes.through import SinkPath, StageInputs
from waybill_status.core.outcomes.views import PipelineKey, View

OnJudged = Callable[[Claim], None]
"""Called with a claim right after it was judged by a view, before the view can change."""


def ignore_claim(claim: Claim) -> None:
    """Do nothing: a single question does not wait for a change."""


async def judge_steps(
    claims: Sequence[Claim], slots: SlotViews, on_judged: OnJudged
) -> tuple[list[Judgement], Sequence[Claim]]:
    """Return the judgements of all but the last pipeline, and the claims to the last one. While
    these claims are not known, there are none, and the last judgements say why."""
    asked, tenant = claims[0].asked, claims[0].pipeline[0]
    judged: list[Judgement] = []
    for number, step in enumerate(asked.through):
        there = slots.view((tenant, step.uid))
        views = {each.pipeline: slots.view(each.pipeline) for each in claims}
        found = [through.judge_towards(step, each, views[each.pipeline], there) for each in claims]
        for claim in claims:
            on_judged(claim)
        judged += [judgement for judgement, _ in found]
        ahead = [through.not_yet(each, tenant) for each in asked.through[number:]]
        if any(judgement.kind != OutcomeKind.COMPLETE for judgement, _ in found):
            return [*judged, *ahead], ()
        try:
            paths = [(judgement.pipeline, path) for judgement, paths in found for path in paths]
            spans = await _spans(step, paths, views, slots)
        except NotKnown as unclear:
            if unclear.reason == UnknownReason.SLOT_MISSING:
                slots.again()
            return [*judged, through.not_known(step, tenant, unclear.reason)], ()
        except Retryable:
            slots.again()
            return [*judged, through.not_known(step, tenant, UnknownReason.REDIS_AWAY)], ()
        if spans is None:
            slots.again()
            return [*judged, *ahead], ()
        claims = [through.next_claim(step, tenant, spans, asked)]
    return judged, claims


async def _spans(
    step: ThroughStep,
    paths: Sequence[tuple[PipelineKey, SinkPath]],
    views: Mapping[PipelineKey, View],
    slots: SlotViews,
) -> list[Span] | None:
    """Return the offsets to ask for in the next pipeline; None while not all of them are known.
    Raises NotKnown, and Retryable."""
    spans: list[Span] = []
    for pipeline, path in paths:
        found = await _find_written(pipeline, path, views[pipeline], slots)
        if found is None:
            return None
        spans += found
    if through.has_later_sink(step, spans):
        raise NotKnown(UnknownReason.SINK_CAME_LATER)
    return spans


async def _find_written(
    pipeline: PipelineKey, path: SinkPath, view: View, slots: SlotViews
) -> tuple[Span, ...] | None:
    """Return what the sink at the end of the path wrote for the records of its spans. `view`: the
    one that was judged by."""
    known = slots.written.get((pipeline, path))
    if known is not None:
        return known
    source = through.stage_inputs(path, view)
    come = [*source.spans]
    for other in source.earlier:
        found = await _find_written(pipeline, other, view, slots)
        if found is None:
            return None
        come += found
    spans: list[Span] = []
    for each in through.thin_out(come):
        found = await _find_written_of(pipeline, path.sink, source, each, slots)
        if found is None:
            return None
        spans += found
    slots.written[pipeline, path] = whole = merge_spans(spans)
    return whole


async def _find_written_of(
    pipeline: PipelineKey, sink: str, source: StageInputs, span: Span, slots: SlotViews
) -> tuple[Span, ...] | None:
    if await is_behind(slots, pipeline, sink, span):
        return None
    first = await first_step(slots, pipeline, sink, replace(span, end=span.start + 1))
    last = await first_step(slots, pipeline, sink, span)
    found = None
    if first is not None and last is not None:
        found = through.written(first.before, first.batch, last.batch, source.topics)
    if found is None:
        lost = await slot_was_lost(pipeline, slots)
        raise NotKnown(UnknownReason.SLOT_MISSING if lost else UnknownReason.BATCH_FORGOTTEN)
    return found
