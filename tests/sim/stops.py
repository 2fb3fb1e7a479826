"""I18: a stage that has stopped by itself starts again only by a command."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from waybill_shared.contract.events import PipelineRecord, StageDefinition

if TYPE_CHECKING:
    from sim.driver import Driver


class Stops:
    def __init__(self, report: Callable[[str, str], None]) -> None:
        self._report = report
        self._last: dict[str, PipelineRecord] = {}

    def recorded(self, record: PipelineRecord) -> None:
        """Check a record that is written: without a command no stage leaves those that stand."""
        before = self._last.get(record.pipeline_uid)
        self._last[record.pipeline_uid] = record
        if before is None or before.commanded_at != record.commanded_at:
            return
        left = {(each.stage, each.since) for each in record.stopped_stages}
        for each in before.stopped_stages:
            if (each.stage, each.since) not in left:
                self._report("I18", f"{record.name}: nobody has started stage {each.stage}")

    def begins(self, driver: "Driver", stage: StageDefinition) -> None:
        """Check a stage that a driver makes."""
        stopped = {(each.stage, each.since) for each in driver.record.stopped_stages}
        if (stage.name, stage.since) in stopped and stage.name not in driver.ordered:
            self._report("I18", f"{driver} starts stage {stage.name} without an order")
