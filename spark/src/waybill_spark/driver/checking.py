"""What a check asks apart from the SQL: whether each sink accepts the rows. Changes nothing."""

import logging
from collections.abc import Iterable
from dataclasses import replace

from waybill_shared.contract.driver import SinkPlaces
from waybill_shared.contract.errors import Problem, Retryable, UserError
from waybill_shared.contract.manifest.model import Manifest, Sink
from waybill_spark.driver.explaining import path_of
from waybill_spark.driver.sql.compile import CompiledStage
from waybill_spark.sinks.contract import WantedSink
from waybill_spark.sinks.opening import loader_of

logger = logging.getLogger(__name__)


Alterations = dict[str, dict[str, tuple[str, ...]]]


def ask_sinks(
    manifest: Manifest, stages: Iterable[CompiledStage], places: SinkPlaces, uid: str
) -> tuple[list[Problem], Alterations]:
    """Return what sinks would refuse, and by stage and sink what the first rows would change there.

    A sink that cannot be reached is no problem here: the run will wait for it.
    """
    problems: list[Problem] = []
    found: Alterations = {}
    owners: dict[str, str] = {}
    for compiled in stages:
        at = f"stages.{manifest.stages.index(compiled.stage)}.sinks"
        for number, sink in enumerate(compiled.stage.sinks):
            try:
                wanted = WantedSink(
                    sink=sink, pipeline_uid=uid, places=places, about=manifest.about
                )
                fit = loader_of(sink.kind).check(wanted, compiled.schemas[sink.name])
                found.setdefault(compiled.stage.name, {})[sink.name] = fit.alterations
                if fit.table:
                    _refuse_one_of_another(sink, owners.setdefault(fit.table, sink.name))
            except UserError as error:
                problems += (replace(p, path=path_of(at, number, sink, p)) for p in error.problems)
            except Retryable as error:
                logger.warning(
                    "sink cannot be asked", extra={"sink": sink.name, "reason": str(error)}
                )
            except Exception:  # whatever it was, it is no reason to end the driver
                logger.exception("sink cannot be asked", extra={"sink": sink.name})
    return problems, found


def _refuse_one_of_another(sink: Sink, owner: str) -> None:
    """Refuse a table that two sinks use under two names.

    The manifest's own checks know tables by their names only.
    """
    if owner != sink.name:
        message = f"{sink.settings.target} is already that of sink {owner!r}, by another name"
        raise UserError([Problem(message=message, path="table", hint="give each its own table")])
