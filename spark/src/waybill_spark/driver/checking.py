"""What a check asks beside the SQL: whether each sink takes the rows. Changes nothing."""

import logging
from collections.abc import Iterable
from dataclasses import replace

from waybill_shared.contract.driver import SinkPlaces
from waybill_shared.contract.errors import Retryable, UserError
from waybill_shared.contract.events import Problem
from waybill_shared.contract.manifest.model import Manifest, Sink
from waybill_spark.driver.compile import CompiledStage
from waybill_spark.sinks.opening import loader_of

logger = logging.getLogger(__name__)


def unfit(manifest: Manifest, stages: Iterable[CompiledStage], places: SinkPlaces) -> list[Problem]:
    """What sinks would refuse; one that cannot be asked is the run's to wait for."""
    problems: list[Problem] = []
    for compiled in stages:
        at = f"stages.{manifest.stages.index(compiled.stage)}.sinks"
        for number, sink in enumerate(compiled.stage.sinks):
            try:
                loader_of(sink.kind).check(sink, compiled.schemas[sink.name], places)
            except UserError as error:
                problems += (replace(p, path=_path(at, number, sink, p)) for p in error.problems)
            except Retryable as error:
                logger.warning(
                    "sink cannot be asked", extra={"sink": sink.name, "reason": str(error)}
                )
    return problems


def _path(stage: str, number: int, sink: Sink, problem: Problem) -> str:
    """Of the key of its settings, where the problem names one."""
    key = f".{sink.kind}.{problem.path}" if problem.path else ""
    return f"{stage}.{number}{key}"
