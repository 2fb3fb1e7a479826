"""Makes the reports of a maintenance that somebody asked for."""

from collections.abc import Mapping

from waybill_shared.contract.driver_news import TableMaintenance
from waybill_shared.contract.events import PipelineRecord


def maintenance_reports(
    record: PipelineRecord, sink: str, tasks: Mapping[str, Mapping[str, int]]
) -> tuple[TableMaintenance, ...]:
    """Return a report for each task that did something.

    Empty if the sink was removed meanwhile.
    """
    return tuple(
        TableMaintenance(stage=stage.name, sink=sink, task=task, done={**done})
        for stage in record.stages
        if sink in {each.name for each in stage.sinks}
        for task, done in tasks.items()
        if any(done.values())
    )
