"""Opens and starts all stages of a run, in the order that keeps each promise."""

import logging
from collections.abc import Iterable, Sequence
from typing import Final

from waybill_shared.contract.dead_letter_requests import DeadLetterRequest
from waybill_shared.contract.errors import Problem
from waybill_spark.driver.app import RunningStage
from waybill_spark.driver.failures import StageFailed
from waybill_spark.tracking.stopping import StageStopped

logger = logging.getLogger(__name__)

UNREAD: Final = Problem(
    message="no stage reads this topic any more", hint="the manifest or the topic has changed"
)


def open_stages(stages: Sequence[RunningStage]) -> None:
    """Claim every sink, report their fences and what can never arrive. Queries start only then."""
    for stage in stages:
        stage.open()
        logger.info("fences are read", extra={"stage": stage.name})
    report_losses(stages)


def put_dead_letters(
    stages: Iterable[RunningStage], asked: Iterable[DeadLetterRequest]
) -> dict[str, Problem]:
    """Write the dead letters that a person asks for. Return by the id of its command why one is in
    no journal.
    """
    found: dict[str, list[Problem | None]] = {each.command: [] for each in asked}
    for stage in stages:
        for command, problem in stage.put_dead_letters().items():
            found[command].append(problem)
    return {
        command: next(filter(None, problems), UNREAD)
        for command, problems in found.items()
        if None not in problems
    }


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
