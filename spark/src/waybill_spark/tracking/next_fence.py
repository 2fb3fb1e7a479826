"""Makes the fence that follows another one in a sink. Never does I/O."""

from dataclasses import replace

from waybill_shared.contract.batches import follow, planned
from waybill_shared.contract.events import Fence
from waybill_shared.contract.vectors import Vector, behind, join
from waybill_spark.tracking.batch import NO_BATCH, Batch
from waybill_spark.tracking.commits import Identity


def next_fence(
    before: Fence | None,
    batch: Batch,
    *,
    ends: Vector,
    bases: Vector,
    replayed: Vector,
    stage: str,
    sink: str,
    identity: Identity,
) -> Fence:
    """Return the fence after `before` and a batch up to `ends`, without its rows yet. `replayed`:
    up to where the sink has the replays that name it.

    Replays move neither position nor frontier. The last batch of the stage stays the last, so it is
    recognized if Spark repeats it.
    """
    if batch.of_replays:
        replayed, ends = join(replayed, ends), {}
        batch = replace(_as_last(before, batch), runs=before.inputs if before is not None else ())
    frontier = join(bases if before is None else join(bases, before.frontier), ends)
    position = join(bases if before is None else join(bases, before.position), ends)
    return Fence(
        tenant=identity.tenant,
        pipeline_uid=identity.pipeline_uid,
        stage=stage,
        sink=sink,
        generation=identity.generation,
        epoch=identity.epoch,
        lifecycle_id=identity.lifecycle_id,
        batch=follow(before.batch if before is not None else None, batch.report),
        inputs=batch.ranges,
        frontier=frontier,
        outputs=before.outputs if before is not None else (),
        set_aside=before.set_aside if before is not None else (),
        batches=before.batches if before is not None else 0,
        rewind=before.rewind if before is not None else 0,
        rewound=behind(position, frontier),
        replayed=replayed,
    )


def no_batch(last: Fence | None, now_ms: int) -> Batch:
    """Return what moves a fence alone: nothing, after the last batch."""
    if last is None:
        return Batch(report=planned(NO_BATCH, "", now_ms), runs=())
    return Batch(report=planned(last.batch.batch_id, last.batch.lineage, now_ms), runs=())


def _as_last(last: Fence | None, batch: Batch) -> Batch:
    """Return the batch under the name of the last one of the stage."""
    if last is None:
        return batch
    named = replace(batch.report, batch_id=last.batch.batch_id, lineage=last.batch.lineage)
    return replace(batch, report=named)
