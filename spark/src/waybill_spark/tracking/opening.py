"""What is done at the start of a stage, after its sinks are claimed and their fences are read."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from waybill_shared.contract.batches import planned
from waybill_shared.contract.vectors import TopicPartition, Vector, join
from waybill_shared.contract.words import StopReason
from waybill_spark.tracking.batch import NO_BATCH, Batch
from waybill_spark.tracking.checkpoint import Checkpoint, CheckpointDamaged, Planned
from waybill_spark.tracking.dead_letters.triage import Triage
from waybill_spark.tracking.fencing import Diverged
from waybill_spark.tracking.ledger import Ledger
from waybill_spark.tracking.pieces import Ranges
from waybill_spark.tracking.rewinding import Replacing, Rewind
from waybill_spark.tracking.stopping import StageStopped

logger = logging.getLogger(__name__)

DAMAGED: Final = "is damaged"


def start_later_sinks(ledgers: Sequence[Ledger]) -> None:
    """Give a first fence to sinks that were added later, not to one that lost its fence."""
    rewind = max(ledger.rewind_number for ledger in ledgers)
    for ledger in ledgers:
        start = find_start(ledger, ledgers)
        if start is not None:
            ledger.start_at(start, rewind)


def find_start(ledger: Ledger, stage: Iterable[Ledger]) -> Vector | None:
    """Return where a sink starts that was added after its stage had started: where the other sinks
    are.

    None for any other sink, also for one that has lost its fence.
    """
    started = [other for other in stage if other.fence is not None]
    if ledger.fence is not None or ledger.later is None or not started:
        return None
    since = ledger.later.since
    if any(other.has_written_since(since) for other in started):
        return None
    start: Vector = {}
    for other in started:
        start = join(start, other.position())
    return start


def refuse_missing_fences(stage: str, ledgers: Sequence[Ledger], checkpoint: Checkpoint) -> None:
    """Raise StageStopped if a sink has no fence though the stage has written before."""
    for ledger in ledgers:
        if ledger.fence is not None:
            continue
        has_written = _others_have_written(ledgers) or checkpoint.took_something()
        if has_written is False:
            continue
        has = "has" if has_written else f"may have (its checkpoint {DAMAGED})"
        detail = (
            f"stage {stage} {has} written, but sink {ledger.sink.name} has no fence of"
            " it: its table was replaced, or its fence was deleted"
        )
        hint = (
            "restore the sink with its fence; or empty the sinks, delete the pipeline and"
            " apply it again: it writes again what its inputs still hold"
        )
        raise StageStopped(StopReason.CHECKPOINT_DIVERGED, detail, hint)


def read_planned(stage: str, checkpoint: Checkpoint) -> Planned | None:
    """Return what the checkpoint has planned last; None if it cannot be read."""
    try:
        return checkpoint.last_planned()
    except CheckpointDamaged as damage:
        logger.warning("checkpoint", extra={"stage": stage, "reason": str(damage)})
        return None


def diverged(stage: str, found: Diverged) -> StageStopped:
    """Return the error of a batch that does not fit the sinks."""
    detail = f"stage {stage}, sink {found.sink}: {found.detail}"
    hint = "the next start continues from what the sinks have"
    return StageStopped(StopReason.CHECKPOINT_DIVERGED, detail, hint, retryable=True)


def do_rewinds(
    stage: str,
    ledgers: Iterable[Ledger],
    triage: Triage,
    rewinds: Iterable[Rewind],
    replacing: Mapping[str, Replacing],
) -> None:
    """Do rewinds in each sink that has not had them. What died before is left out by then."""
    left = {
        ledger: pending
        for ledger in ledgers
        if (pending := [each for each in rewinds if each.number > ledger.rewind_number])
    }
    if again := _least(each for pending in left.values() for each in pending):
        triage.recall(again)
    for ledger, pending in left.items():
        logger.warning(
            "sink is rewound",
            extra={"stage": stage, "sink": ledger.sink.name, "rewinds": str(pending)},
        )
        ledger.rewind(pending, reads_on=replacing.get(ledger.sink.name) is Replacing.BY_KEY)


def refuse_older_rows(
    stage: str, ledgers: Iterable[Ledger], replacing: Mapping[str, Replacing]
) -> None:
    """Raise StageStopped if a sink that each batch replaces is to get older rows again.

    A rewind of such a stage is refused when somebody asks for it. Its sink may have changed since.
    """
    for ledger in ledgers:
        erases = replacing.get(ledger.sink.name) is Replacing.BY_BATCH
        if erases and ledger.position() != ledger.frontier():
            detail = (
                f"stage {stage} reads records again, and its sink {ledger.sink.name} would replace"
                " newer rows by them"
            )
            hint = (
                "apply the manifest of before; apply this one when `waybill offsets` shows no lag"
            )
            raise StageStopped(StopReason.REPLACES_ROWS, detail, hint)


def make_batch(ledgers: Iterable[Ledger], ranges: Ranges, now_ms: int) -> Batch:
    """Return the ranges as a batch for a sink that lags; the same one if another sink has written
    them as one.
    """
    fences = [ledger.fence for ledger in ledgers if ledger.fence is not None]
    model = next((fence.batch for fence in fences if fence.inputs == ranges), None)
    batch_id, lineage = (model.batch_id, model.lineage) if model else (NO_BATCH, "")
    return Batch(report=planned(batch_id, lineage, now_ms), runs=ranges, for_one_sink=True)


def _least(rewinds: Iterable[Rewind]) -> Vector:
    """Return the first offset that one of the rewinds names in each partition."""
    least: dict[TopicPartition, int] = {}
    for rewind in rewinds:
        for place, start in rewind.starts.items():
            least[place] = min(start, least.get(place, start))
    return least


def _others_have_written(ledgers: Iterable[Ledger]) -> bool:
    """Return True if a second batch was written: it comes after every sink has the first."""
    return any(ledger.fence is not None and ledger.fence.batches > 1 for ledger in ledgers)
