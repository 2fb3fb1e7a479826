"""Answers for a token from what is seen of its pipelines: judges it, and finds the batches."""

from collections.abc import Sequence

from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.events import to_vector
from waybill_shared.contract.slots import Progress
from waybill_shared.contract.tokens import Token
from waybill_shared.contract.vectors import Vector, passes
from waybill_shared.contract.words import OutcomeKind, TokenLevel, UnknownReason
from waybill_status.app.dead import NotKnown, with_deaths, with_drops
from waybill_status.app.history import first_where
from waybill_status.app.ports import Sight
from waybill_status.core.judge import Claim, judge, nothing_required
from waybill_status.core.judgements import Judgement
from waybill_status.core.outcomes import Outcome, describe, unknown
from waybill_status.core.views import PipelineKey

NEWEST = 64  # batches looked at first: nearly every question is about something recent


def judge_all(claims: Sequence[Claim], sight: Sight) -> list[Judgement]:
    judged = [judge(claim, sight.view(claim.pipeline)) for claim in claims]
    known = all(judgement.kind != OutcomeKind.UNKNOWN for judgement in judged)
    named = {name for judgement in judged for name in judgement.named}
    first, level = claims[0], claims[0].asked.level
    if known and level != TokenLevel.ACCEPTED and not named.issuperset(first.asked.sinks):
        return [nothing_required(first)]
    return judged


async def answer(token: Token, judgements: Sequence[Judgement], sight: Sight) -> Outcome:
    """With the batch that brought it to each sink, and what of it died or was dropped. `unknown`
    while that cannot be read."""
    batches: dict[tuple[PipelineKey, str], Progress | None] = {}
    described: list[Judgement] = []
    for judgement in judgements:
        try:
            found = await with_deaths(judgement, sight)
            batches |= await _batches_of(judgement, sight)
            described.append(await with_drops(found, sight, batches))
        except NotKnown as unclear:
            return unknown(token, unclear.reason, judgement.name)
        except Retryable:
            name = judgements[0].name if len(judgements) == 1 else None
            return unknown(token, UnknownReason.REDIS_AWAY, name)
    return describe(token, described, batches)


async def _batches_of(
    judgement: Judgement, sight: Sight
) -> dict[tuple[PipelineKey, str], Progress | None]:
    batches: dict[tuple[PipelineKey, str], Progress | None] = {}
    pipeline = judgement.pipeline
    sinks = [sink for stage in judgement.stages for sink in stage.sinks]
    for sink in (s for s in sinks if s.brought):
        found = await find_batch(sight, pipeline, sink.key, sink.wanted)
        if found is None and await _slot_was_lost(pipeline, sight):
            raise NotKnown(UnknownReason.SLOT_MISSING)
        batches[pipeline, sink.key] = found
    return batches


async def _slot_was_lost(pipeline: PipelineKey, sight: Sight) -> bool:
    """Whether Redis lost the slot since it was read: then its history says nothing of it."""
    stamp = (await sight.store.stamps([pipeline])).get(pipeline)
    if stamp is None or stamp.run_id != stamp.server_run_id:
        return True
    return stamp.version < sight.view(pipeline).version


async def find_batch(
    sight: Sight, pipeline: PipelineKey, sink: str, wanted: Vector
) -> Progress | None:
    """The first batch after which `wanted` is covered; None when it is no longer remembered."""

    def covers(batch: Progress) -> bool:
        return passes(to_vector(batch.reached), wanted)

    found = await first_where(sight, pipeline, sink, covers)
    if found is None or passes(to_vector(found.batch.before), wanted):
        return None  # not yet; or an older batch did it
    return found.batch
