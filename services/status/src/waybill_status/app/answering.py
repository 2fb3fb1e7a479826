"""Answers for a token from what is seen of its pipelines: judges it, and finds the batches."""

from collections.abc import Sequence

from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.events import to_vector
from waybill_shared.contract.slots import Progress
from waybill_shared.contract.tokens import Token
from waybill_shared.contract.vectors import Vector, passes
from waybill_shared.contract.words import UnknownReason
from waybill_status.app.ports import Sight
from waybill_status.core.judge import Claim, judge
from waybill_status.core.outcomes import (
    Judgement,
    Outcome,
    describe,
    unknown,
)
from waybill_status.core.views import PipelineKey

NEWEST = 64  # batches looked at first: nearly every question is about something recent


def judge_all(claims: Sequence[Claim], sight: Sight) -> list[Judgement]:
    return [judge(claim, sight.view(claim.pipeline)) for claim in claims]


async def answer(token: Token, judgements: Sequence[Judgement], sight: Sight) -> Outcome:
    """With the batch that brought it to each sink. `unknown` while that cannot be read."""
    batches: dict[tuple[PipelineKey, str], Progress | None] = {}
    try:
        for judgement in judgements:
            pipeline = judgement.pipeline
            sinks = [sink for stage in judgement.stages for sink in stage.sinks]
            for sink in (s for s in sinks if s.brought):
                found = await find_batch(sight, pipeline, sink.key, sink.wanted)
                if found is None and await _slot_was_lost(pipeline, sight):
                    return unknown(token, UnknownReason.SLOT_MISSING, judgement.name)
                batches[pipeline, sink.key] = found
    except Retryable:
        name = judgements[0].name if len(judgements) == 1 else None
        return unknown(token, UnknownReason.REDIS_AWAY, name)
    return describe(token, judgements, batches)


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
    newest = await sight.newest(pipeline, sink)
    covering = [progress for progress in newest if _covers(progress, wanted)]
    if len(covering) < len(newest) or not newest:
        return covering[0] if covering else None
    older = await sight.store.count(pipeline, sink) - len(newest)
    found = newest[0]
    low, high = 0, max(0, older)
    while low < high:
        middle = (low + high) // 2
        progress = await sight.store.at_rank(pipeline, sink, middle)
        if progress is not None and _covers(progress, wanted):
            found, high = progress, middle
        else:
            low = middle + 1
    forgotten = passes(to_vector(found.before), wanted)  # an older batch did it
    return None if forgotten else found


def _covers(progress: Progress, wanted: Vector) -> bool:
    return passes(to_vector(progress.reached), wanted)
