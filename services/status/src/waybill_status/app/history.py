"""Finds batches among those that are remembered of a sink, however far back they lie."""

from collections.abc import Callable
from dataclasses import dataclass

from waybill_shared.contract.slots import Progress
from waybill_status.app.ports import Sight
from waybill_status.core.views import PipelineKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A batch, counted from the oldest that is remembered, and the one before it, if any is."""

    batch: Progress
    before: Progress | None


async def first_where(
    sight: Sight, pipeline: PipelineKey, sink: str, holds: Callable[[Progress], bool]
) -> Place | None:
    """The first batch of which something holds that holds of all behind it, too."""
    newest = await sight.newest(pipeline, sink)
    first = next((rank for rank, batch in enumerate(newest) if holds(batch)), None)
    if first is None:
        return None
    if first > 0:
        return Place(batch=newest[first], before=newest[first - 1])
    low, high = 0, max(0, await sight.store.count(pipeline, sink) - len(newest))
    found, before = newest[0], None
    while low < high:
        middle = (low + high) // 2
        batch = await sight.store.at_rank(pipeline, sink, middle)
        if batch is not None and holds(batch):
            found, high = batch, middle
        else:
            before, low = batch, middle + 1
    return Place(batch=found, before=before)
