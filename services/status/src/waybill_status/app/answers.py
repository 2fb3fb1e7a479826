"""Answers for a token from what is seen of its pipelines: judges it, and finds the batches."""

from collections.abc import Sequence

from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.slots import Progress
from waybill_shared.contract.tokens import Token
from waybill_shared.contract.words import UnknownReason
from waybill_status.app.details import find_batch
from waybill_status.app.ports import Sight, SlotStore
from waybill_status.core.judge import Claim, judge
from waybill_status.core.outcomes import (
    Judgement,
    Outcome,
    describe,
    unknown,
)
from waybill_status.core.views import PipelineKey


def judged(claims: Sequence[Claim], sight: Sight) -> list[Judgement]:
    return [judge(claim, sight.view(claim.pipeline)) for claim in claims]


async def described(
    store: SlotStore, token: Token, judgements: Sequence[Judgement], sight: Sight
) -> Outcome:
    """With the batch that brought it to each sink. `unknown` while that cannot be read."""
    batches: dict[tuple[PipelineKey, str], Progress | None] = {}
    try:
        for judgement in judgements:
            pipeline = judgement.pipeline
            sinks = [sink for stage in judgement.stages for sink in stage.sinks]
            for sink in (s for s in sinks if s.brought):
                found = await find_batch(store, sight, pipeline, sink.key, sink.wanted)
                if found is None and await _replaced(store, pipeline, sight):
                    return unknown(token, UnknownReason.SLOT_MISSING, judgement.name)
                batches[pipeline, sink.key] = found
    except Retryable:
        name = judgements[0].name if len(judgements) == 1 else None
        return unknown(token, UnknownReason.REDIS_AWAY, name)
    return describe(token, judgements, batches)


async def _replaced(store: SlotStore, pipeline: PipelineKey, sight: Sight) -> bool:
    """Whether Redis lost the slot since it was read: then its history says nothing of it."""
    stamp = (await store.stamps([pipeline])).get(pipeline)
    if stamp is None or stamp.run_id != stamp.server_run_id:
        return True
    return stamp.version < sight.view(pipeline).version
