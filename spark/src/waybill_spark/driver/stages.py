"""Opens and starts all stages of a run, in the order that keeps each promise."""

import logging
from collections.abc import Iterable
from typing import Final

from waybill_shared.contract.dead_letter_requests import DeadLetterRequest
from waybill_shared.contract.errors import Problem
from waybill_shared.contract.events import StageDefinition
from waybill_spark.driver.app import RunningStage
from waybill_spark.driver.definitions import requests_of
from waybill_spark.driver.failures import StageFailed, is_of_stage
from waybill_spark.driver.going import RunStages
from waybill_spark.tracking.stopping import StageStopped

logger = logging.getLogger(__name__)

UNREAD: Final = Problem(
    message="no stage reads this topic any more", hint="the manifest or the topic has changed"
)


def open_stages(stages: RunStages) -> None:
    """Claim every sink, report their fences and what can never arrive. Queries start only then."""
    for stage in list(stages.going):
        if stages.attempt(stage, stage.open):
            logger.info("fences are read", extra={"stage": stage.name})
    stopped = _report_each(stages.going)
    for stage, error in sorted(stopped, key=lambda each: is_of_stage(each[1])):
        stages.fail(stage, error)


def put_dead_letters(
    stages: Iterable[RunningStage],
    asked: Iterable[DeadLetterRequest],
    stopped: Iterable[StageDefinition] = (),
) -> dict[str, Problem]:
    """Write the dead letters that a person asks for. Return by the id of its command why one is not
    in the journal of each stage that reads its record: a stage that is `stopped` writes none.
    """
    asked = tuple(asked)
    lack = {each.command: stage.name for stage in stopped for each in requests_of(stage, asked)}
    found: dict[str, list[Problem | None]] = {each.command: [] for each in asked}
    for stage in stages:
        for command, problem in stage.put_dead_letters().items():
            found[command].append(problem)
    return {command: _explain_stopped(name) for command, name in lack.items()} | {
        command: next(filter(None, problems), UNREAD)
        for command, problems in found.items()
        if command not in lack and None not in problems
    }


def _explain_stopped(stage: str) -> Problem:
    return Problem(
        message=f"stage {stage} reads the record, is stopped, and cannot be started",
        hint=f"mend what stops it, `waybill start PIPELINE --stage {stage}`, then ask again",
    )


def start_stages(stages: RunStages) -> None:
    for stage in list(stages.going):
        if stages.attempt(stage, stage.start):
            logger.info("stage is started", extra={"stage": stage.name})


def report_losses(stages: Iterable[RunningStage]) -> None:
    """Report the losses of every stage, even if another one fails. Then raise the first error."""
    for stage, error in _report_each(stages):
        raise StageFailed(stage.name) from error


def _report_each(stages: Iterable[RunningStage]) -> list[tuple[RunningStage, StageStopped]]:
    """Report the losses of every stage. Return those that cannot go on, and why."""
    stopped: list[tuple[RunningStage, StageStopped]] = []
    for stage in stages:
        try:
            stage.report_losses()
        except StageStopped as error:
            logger.error("stage cannot go on", extra={"stage": stage.name, "reason": str(error)})
            stopped.append((stage, error))
    return stopped
