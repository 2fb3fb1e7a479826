"""Opens and starts all stages of a run, in the order that keeps each promise."""

import logging
from collections.abc import Iterable, Sequence

from waybill_spark.driver.app import RunningStage
from waybill_spark.driver.failures import StageFailed
from waybill_spark.tracking.stopping import StageStopped

logger = logging.getLogger(__name__)


def open_stages(stages: Sequence[RunningStage]) -> None:
    """Claim every sink, report their fences and what can never arrive. Queries start only then."""
    for stage in stages:
        stage.open()
        logger.info("fences are read", extra={"stage": stage.name})
    report_losses(stages)


def start_stages(stages: Sequence[RunningStage]) -> None:
    for stage in stages:
        stage.start()
        logger.info("stage is started", extra={"stage": stage.name})


def report_losses(stages: Iterable[RunningStage]) -> None:
    """Report the losses of every stage, even if another one fails. Then raise the first error."""
    stopped: StageFailed | None = None
    for stage in stages:
        try:
            stage.report_losses()
        except StageStopped as error:
            logger.error("stage cannot go on", extra={"stage": stage.name, "reason": str(error)})
            if stopped is None:
                stopped = StageFailed(stage.name)
                stopped.__cause__ = error
    if stopped is not None:
        raise stopped
