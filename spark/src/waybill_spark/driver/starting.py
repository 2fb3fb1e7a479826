"""Starts stopped stages of a run as orders say, while the others go on."""

import time
from collections.abc import Callable
from typing import Final

from waybill_spark.driver.going import RunStages
from waybill_spark.driver.pausing import Pausing
from waybill_spark.driver.run_control import RunControl

HIDDEN_INTERVAL_S: Final = 2.0  # as a stage that goes on looks at its topics


class StageStarting:
    """Follows the orders to start stages. `report` is called with the number of an order when each
    of its stages runs, or was reported as one that cannot be started.
    """

    def __init__(
        self,
        stages: RunStages,
        control: RunControl,
        pausing: Pausing,
        report: Callable[[int], None],
    ) -> None:
        self._stages = stages
        self._control = control
        self._pausing = pausing
        self._report = report
        self._look_at = 0.0

    def follow(self) -> None:
        """Start what is to be started, and report rows of stopped stages that are visible now."""
        while (starts := self._control.next_starts()) is not None:
            for name in starts.stages:
                self._stages.start(name, paused=self._pausing.is_wanted)
            self._report(starts.order)
        if time.monotonic() >= self._look_at:
            self._look_at = time.monotonic() + HIDDEN_INTERVAL_S
            self._stages.report_hidden()
