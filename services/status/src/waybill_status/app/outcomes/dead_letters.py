"""Finds the dead letters of a token, and what its batches have dropped."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from waybill_shared.contract.batches import BatchReport
from waybill_shared.contract.errors import ContractError, Retryable
from waybill_shared.contract.vectors import Vector
from waybill_shared.contract.words import UnknownReason
from waybill_status.app.outcomes.history import first_of
from waybill_status.app.ports import DeadReading, SlotViews
from waybill_status.core.outcomes.dead_letters import READ_MAX, Dropped, dead_records_of, runs_of
from waybill_status.core.outcomes.judgements import Judgement, StageJudgement, dead_lettered
from waybill_status.core.outcomes.outcome import Batches
from waybill_status.core.outcomes.views import PipelineKey, View, view_of

TRIES: Final = 5  # one fails if the tracker writes in the millisecond between two reads


class NotKnown(ContractError):
    """The error that something judged cannot be described now."""

    def __init__(self, reason: UnknownReason) -> None:
        super().__init__(reason)
        self.reason = reason


async def with_dead_letters(judgement: Judgement, slots: SlotViews) -> Judgement:
    """Return the judgement with its dead letters. Nothing is read if none are counted.

    Raises NotKnown if Redis has fewer than the slot counts, and Retryable.
    """
    if not judgement.dead_asked:
        return judgement
    view = slots.view(judgement.pipeline)
    for _ in range(TRIES):
        if view.fault is not None:
            raise NotKnown(view.fault)
        runs = runs_of(judgement.dead_asked, view.dead)
        found = await slots.store.dead(judgement.pipeline, runs, READ_MAX + 1)
        if _of_the_same_moment(found, view):
            if any(found.counts[run.key] < view.dead[run.key].entries for run in runs):
                raise NotKnown(UnknownReason.SLOT_MISSING)
            entries, cut = found.entries[:READ_MAX], len(found.entries) > READ_MAX
            replays = partial(slots.replays.of, judgement.pipeline)
            dead_records = dead_records_of(judgement.dead_asked, entries, cut=cut, replays=replays)
            return dead_lettered(judgement, dead_records)
        view = view_of((await slots.store.read([judgement.pipeline]))[judgement.pipeline])
    raise Retryable(f"the slot was written {TRIES} times while it was read")


def _of_the_same_moment(found: DeadReading, view: View) -> bool:
    """Return True if the entries belong to the view. In a later version, a record may be part of an
    entry that ends elsewhere. Raises NotKnown if the slot was lost."""
    stamp = found.stamp
    if stamp.run_id != stamp.server_run_id or stamp.version < view.version:
        raise NotKnown(UnknownReason.SLOT_MISSING)
    return stamp.version == view.version


async def with_dropped(judgement: Judgement, slots: SlotViews, batches: Batches) -> Judgement:
    """Return the judgement with what the batches of each stage dropped. These are the batches from
    the one with the first record of the token to the one with the last; `batches` are the last
    ones."""
    dropped: list[Dropped] = []
    for stage in judgement.stages if any(stage.drops_of for stage in judgement.stages) else ():
        for sink in stage.sinks:
            last = batches.get((judgement.pipeline, sink.key))
            rules = [] if last is None else [*_rules(stage, last)]
            if last is None or not rules or not sink.begun:
                continue
            before = await _find_dropped_before(slots, judgement.pipeline, sink.key, sink.begun)
            if before is None:
                continue
            counts = {rule: last.dropped[rule] - before.get(rule, 0) for rule in rules}
            dropped += [
                Dropped(rule=rule, stage=stage.name, up_to=count)
                for rule, count in counts.items()
                if count > 0
            ]
            break  # another sink of the stage had the same batches
    return replace(judgement, dropped=tuple(dropped)) if dropped else judgement


def _rules(stage: StageJudgement, batch: BatchReport) -> Iterator[str]:
    """Yield the rules of the token's inputs by which records had been dropped until then."""
    for rule in sorted(batch.dropped):
        if rule.partition(".")[0] in stage.drops_of:
            yield rule


async def _find_dropped_before(
    slots: SlotViews, pipeline: PipelineKey, sink: str, begun: Vector
) -> Mapping[str, int] | None:
    """Return the count by rule before the first record of a token arrived; None if that is no
    longer known."""

    found = await first_of(slots, pipeline, sink, begun)
    if found is None:
        return None
    if found.before is not None:
        return found.before.batch.dropped
    return {} if found.batch.batch.sequence == 0 else None
