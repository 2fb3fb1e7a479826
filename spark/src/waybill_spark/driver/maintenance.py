"""Maintains the table of a sink when somebody asks for it. The pipeline that writes there sees its
commits like those of any other writer."""

import logging
from collections.abc import Callable

from waybill_shared.contract.driver import MaintainOrder
from waybill_shared.contract.errors import Problem, Retryable, UserError
from waybill_spark.sinks.contract import Maintainer, WantedSink
from waybill_spark.sinks.opening import loader_of

logger = logging.getLogger(__name__)

TaskCounts = dict[str, dict[str, int]]


def maintain(
    order: MaintainOrder, report_again: Callable[[str], None]
) -> tuple[tuple[Problem, ...], TaskCounts]:
    """Maintain the table of a sink.

    Return what is wrong, or what was done by each task.

    A stopped pipeline does not notice by itself that versions were deleted, so what its sink
    contains is reported again.
    """
    try:
        done = _maintain(order)
        if not order.dry_run:
            report_again(order.sink)
        return (), done
    except UserError as error:
        return error.problems, {}
    except Retryable as error:
        hint = getattr(error, "hint", "") or "try it again later"
        return (Problem(message=str(error), hint=hint),), {}
    except Exception as error:  # whatever it was, it is no reason to end the driver
        logger.exception("table cannot be kept", extra={"sink": order.sink})
        message = f"sink {order.sink}: {type(error).__name__}: {error}"
        return (Problem(message=message, hint="the log of the driver says more"),), {}


def _maintain(order: MaintainOrder) -> TaskCounts:
    spec = order.spec
    manifest = spec.manifest.model
    sink = manifest.sink(order.sink)
    assert sink is not None, "the runner has looked for it"
    maintainer = loader_of(sink.kind)
    assert isinstance(maintainer, Maintainer), "its settings have tasks"
    wanted = WantedSink(
        sink=sink, pipeline_uid=spec.pipeline_uid, places=spec.places, about=manifest.about
    )
    return maintainer.maintain(wanted, dry_run=order.dry_run)
