"""Finds batches in the stored history of a sink, however old they are."""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

from waybill_shared.contract.slots import Progress
from waybill_shared.contract.vectors import Span, Vector, passes
from waybill_status.app.ports import SlotViews
from waybill_status.core.outcomes.through import has_read
from waybill_status.core.outcomes.views import PipelineKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A batch, and the stored one before it, if there is one."""

    batch: Progress
    before: Progress | None


async def last_of(
    slots: SlotViews, pipeline: PipelineKey, sink: str, wanted: Vector
) -> Progress | None:
    """Return the first batch after which `wanted` is covered; None if it is no longer stored."""

    def covers(batch: Progress) -> bool:
        return passes(batch.reached, wanted)

    found = await _first_where(slots, pipeline, sink, covers)
    if found is None or passes(found.batch.before, wanted):
        return None  # not yet; or an older batch did it
    return found.batch


async def first_of(
    slots: SlotViews, pipeline: PipelineKey, sink: str, starts: Vector
) -> Place | None:
    """Return the first batch that reached one of these positions; None if it is no longer
    stored."""

    def come(reached: Vector) -> bool:
        return any(passes(reached, {place: end}) for place, end in starts.items())

    found = await _first_where(slots, pipeline, sink, lambda batch: come(batch.reached))
    return None if found is None or come(found.batch.before) else found


async def is_behind(slots: SlotViews, pipeline: PipelineKey, sink: str, span: Span) -> bool:
    """Return True if no stored step of the sink has read up to the end of the span."""
    newest = await slots.newest(pipeline, sink)
    return bool(newest) and not has_read(newest[-1], span.key, span.end)


async def first_step(
    slots: SlotViews, pipeline: PipelineKey, sink: str, span: Span
) -> Place | None:
    """Return the step that read up to the end of a span; None if it, or the step before it, is no
    longer stored."""

    def covers(step: Progress) -> bool:
        return has_read(step, span.key, span.end)

    found = await _first_where(slots, pipeline, sink, covers)
    if found is None:
        return None
    before = -1 if found.before is None else found.before.number
    return found if before + 1 == found.batch.number else None


async def slot_was_lost(pipeline: PipelineKey, slots: SlotViews) -> bool:
    """Return True if Redis lost the slot since it was read: then its history proves nothing."""
    stamp = (await slots.store.stamps([pipeline])).get(pipeline)
    if stamp is None or stamp.run_id != stamp.server_run_id:
        return True
    return stamp.version < slots.view(pipeline).version


async def _first_where(
    slots: SlotViews, pipeline: PipelineKey, sink: str, holds: Callable[[Progress], bool]
) -> Place | None:
    """Return the first batch for which `holds` is true. It must be true for all later ones, too:
    this is a binary search."""
    newest = await slots.newest(pipeline, sink)
    first = bisect_left(newest, True, key=holds)
    if first == len(newest):
        return None
    if first > 0:
        return Place(batch=newest[first], before=newest[first - 1])
    low, high = 0, max(0, await slots.store.count(pipeline, sink) - len(newest))
    found, before = newest[0], None
    while low < high:
        middle = (low + high) // 2
        batch = await slots.store.at_rank(pipeline, sink, middle)
        if batch is not None and holds(batch):
            found, high = batch, middle
        else:
            before, low = batch, middle + 1
    return Place(batch=found, before=before)
