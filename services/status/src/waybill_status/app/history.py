"""Finds batches among those that are remembered of a sink, however far back they lie."""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

from waybill_shared.contract.events import PartitionOffset, to_vector
from waybill_shared.contract.slots import Progress
from waybill_shared.contract.vectors import Span, Vector, passes
from waybill_status.app.ports import Sight
from waybill_status.core.legs import has_taken
from waybill_status.core.views import PipelineKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A batch, counted from the oldest that is remembered, and the one before it, if any is."""

    batch: Progress
    before: Progress | None


async def last_of(
    sight: Sight, pipeline: PipelineKey, sink: str, wanted: Vector
) -> Progress | None:
    """The first batch after which `wanted` is covered; None when it is no longer remembered."""

    def covers(batch: Progress) -> bool:
        return passes(to_vector(batch.reached), wanted)

    found = await _first_where(sight, pipeline, sink, covers)
    if found is None or passes(to_vector(found.batch.before), wanted):
        return None  # not yet; or an older batch did it
    return found.batch


async def first_of(sight: Sight, pipeline: PipelineKey, sink: str, begun: Vector) -> Place | None:
    """The first batch that came as far as `begun` in any partition; None when it is no longer
    remembered."""

    def come(ends: tuple[PartitionOffset, ...]) -> bool:
        reached = to_vector(ends)
        return any(passes(reached, {place: end}) for place, end in begun.items())

    found = await _first_where(sight, pipeline, sink, lambda batch: come(batch.reached))
    return None if found is None or come(found.batch.before) else found


async def is_behind(sight: Sight, pipeline: PipelineKey, sink: str, span: Span) -> bool:
    """Whether no step has come to the end of what the stage reads there, by what is remembered."""
    newest = await sight.newest(pipeline, sink)
    return bool(newest) and not has_taken(newest[-1], span.key, span.end)


async def first_step(sight: Sight, pipeline: PipelineKey, sink: str, span: Span) -> Place | None:
    """The step that took what lies before the end of a span; None when it, or the one before it,
    is no longer remembered."""

    def covers(step: Progress) -> bool:
        return has_taken(step, span.key, span.end)

    found = await _first_where(sight, pipeline, sink, covers)
    if found is None:
        return None
    before = -1 if found.before is None else found.before.number
    return found if before + 1 == found.batch.number else None


async def slot_was_lost(pipeline: PipelineKey, sight: Sight) -> bool:
    """Whether Redis lost the slot since it was read: then its history says nothing of it."""
    stamp = (await sight.store.stamps([pipeline])).get(pipeline)
    if stamp is None or stamp.run_id != stamp.server_run_id:
        return True
    return stamp.version < sight.view(pipeline).version


async def _first_where(
    sight: Sight, pipeline: PipelineKey, sink: str, holds: Callable[[Progress], bool]
) -> Place | None:
    """The first batch of which something holds that holds of all behind it, too."""
    newest = await sight.newest(pipeline, sink)
    first = bisect_left(newest, True, key=holds)
    if first == len(newest):
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
