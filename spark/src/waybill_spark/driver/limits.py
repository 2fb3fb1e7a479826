"""How large the batches of a stage may be, by its manifest and by what its sinks can do."""

from collections.abc import Callable

from waybill_shared.contract.manifest.triggers import Once
from waybill_spark.driver.reading.topics import BatchLimits
from waybill_spark.driver.sql.compile import CompiledStage


def batch_limits(
    compiled: CompiledStage, *, rows_max: int, bytes_max: int, can_work: Callable[[], bool]
) -> BatchLimits:
    """Return the limits of a stage. `rows_max`, `bytes_max`: the most that a driver reads at once.

    A batch of `once` is the only one of its run, so that it is never cut, whatever its size.
    """
    stage = compiled.stage
    settings = [sink.settings for sink in stage.sinks]
    once = isinstance(stage.effective_trigger, Once)
    must_stay_whole = once or any(each.replaces for each in settings)
    bounded = stage.max_bytes_per_trigger
    gathered = bounded is not None or any(each.gathers for each in settings)
    return BatchLimits(
        rows_max=rows_max,
        bytes_max=bounded or bytes_max,
        distribute=compiled.distribute,
        plan_records=compiled.plan_records,
        may_distribute=can_work if must_stay_whole or not gathered else lambda: False,
        must_stay_whole=must_stay_whole,
    )
