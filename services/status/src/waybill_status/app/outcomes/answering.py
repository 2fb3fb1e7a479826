"""Answers for a token from the views of its pipelines: judges it, and finds its batches."""

from collections.abc import Sequence

from waybill_shared.contract.batches import BatchReport
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.tokens import Token
from waybill_shared.contract.words import OutcomeKind, UnknownReason
from waybill_status.app.outcomes.dead_letters import NotKnown, with_dead_letters, with_dropped
from waybill_status.app.outcomes.history import last_of, slot_was_lost
from waybill_status.app.outcomes.through import OnJudged, ignore_claim, judge_steps
from waybill_status.app.ports import SlotViews
from waybill_status.core.outcomes.claims import Claim
from waybill_status.core.outcomes.claims import unknown as unknown_of
from waybill_status.core.outcomes.judge import judge
from waybill_status.core.outcomes.judgements import Judgement
from waybill_status.core.outcomes.outcome import Outcome, describe, unknown
from waybill_status.core.outcomes.views import PipelineKey

NEWEST = 64  # batches read first: nearly every question is about something recent


async def judge_all(
    claims: Sequence[Claim], slots: SlotViews, on_judged: OnJudged = ignore_claim
) -> list[Judgement]:
    """Return the judgements, in the order in which the pipelines follow each other."""
    ahead, last = await judge_steps(claims, slots, on_judged)
    judged = [judge(claim, slots.view(claim.pipeline)) for claim in last]
    for claim in last:
        on_judged(claim)
    known = all(judgement.kind != OutcomeKind.UNKNOWN for judgement in judged)
    named = {name for judgement in judged for name in judgement.named}
    own = bool(last) and not last[0].beyond  # # other pipelines checked the names earlier
    if own and known and not named.issuperset(last[0].asked.sinks):
        return [*ahead, unknown_of(last[0], UnknownReason.NOTHING_REQUIRED)]
    return [*ahead, *judged]


async def answer(token: Token, judgements: Sequence[Judgement], slots: SlotViews) -> Outcome:
    """Return the outcome, with the batch that wrote the token to each sink, its dead letters and
    its dropped records. Return `unknown` while these cannot be read."""
    batches: dict[tuple[PipelineKey, str], BatchReport | None] = {}
    described: list[Judgement] = []
    for judgement in judgements:
        try:
            found = await with_dead_letters(judgement, slots)
            batches |= await _batches_of(judgement, slots)
            described.append(await with_dropped(found, slots, batches))
        except NotKnown as unclear:
            return unknown(token, unclear.reason, judgement.name)
        except Retryable:
            name = judgements[0].name if len(judgements) == 1 else None
            return unknown(token, UnknownReason.REDIS_AWAY, name)
    return describe(token, described, batches)


async def _batches_of(
    judgement: Judgement, slots: SlotViews
) -> dict[tuple[PipelineKey, str], BatchReport | None]:
    batches: dict[tuple[PipelineKey, str], BatchReport | None] = {}
    pipeline = judgement.pipeline
    sinks = [sink for stage in judgement.stages for sink in stage.sinks]
    for sink in (s for s in sinks if s.brought):
        found = await last_of(slots, pipeline, sink.key, sink.wanted)
        if found is None and await slot_was_lost(pipeline, slots):
            raise NotKnown(UnknownReason.SLOT_MISSING)
        batches[pipeline, sink.key] = None if found is None else found.batch
    return batches
