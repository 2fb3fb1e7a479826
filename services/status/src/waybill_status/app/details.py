"""Finds the batch that brought a token to a sink, in the history that the tracker keeps."""

from waybill_shared.contract.events import to_vector
from waybill_shared.contract.slots import Progress
from waybill_shared.contract.vectors import Vector, passes
from waybill_status.app.ports import Sight, SlotStore
from waybill_status.core.views import PipelineKey

NEWEST = 64  # batches looked at first: nearly every question is about something recent


async def find_batch(
    store: SlotStore, sight: Sight, pipeline: PipelineKey, sink: str, wanted: Vector
) -> Progress | None:
    """The first batch after which `wanted` is covered; None when it is no longer remembered."""
    newest = await sight.newest(pipeline, sink)
    covering = [progress for progress in newest if _covers(progress, wanted)]
    if len(covering) < len(newest) or not newest:
        return covering[0] if covering else None
    older = await store.count(pipeline, sink) - len(newest)
    found = newest[0]
    low, high = 0, max(0, older)
    while low < high:
        middle = (low + high) // 2
        progress = await store.at_rank(pipeline, sink, middle)
        if progress is not None and _covers(progress, wanted):
            found, high = progress, middle
        else:
            low = middle + 1
    forgotten = passes(to_vector(found.before), wanted)  # an older batch did it
    return None if forgotten else found


def _covers(progress: Progress, wanted: Vector) -> bool:
    return passes(to_vector(progress.reached), wanted)
