"""What may fail in a driver, and which of its stages are in a call."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from sim.spark import QueryFailed
from sim.stages import SimStage
from waybill_shared.contract.errors import Retryable, UserError
from waybill_spark.driver.failures import StageFailed
from waybill_spark.tracking.checkpoint import CheckpointDamaged
from waybill_spark.tracking.dead_letters.bisecting import NoRecordAtFault
from waybill_spark.tracking.sink import SinkSuperseded
from waybill_spark.tracking.stopping import StageStopped

FAILURES = (
    StageFailed, StageStopped, SinkSuperseded, CheckpointDamaged, QueryFailed, Retryable,
    UserError, NoRecordAtFault,
)  # fmt: skip


@contextmanager
def holding(stages: Sequence[SimStage]) -> Iterator[None]:
    """A stage that is in a call is in no other: the real one has a lock for it."""
    for stage in stages:
        stage.busy = True
    try:
        yield
    finally:
        for stage in stages:
            stage.busy = False


@contextmanager
def failing(stage: SimStage, fail: Callable[[SimStage, Exception], None]) -> Iterator[None]:
    """A call of a stage; `fail` gets what fails in it."""
    try:
        with holding([stage]):
            yield
    except FAILURES as failure:
        fail(stage, failure)
