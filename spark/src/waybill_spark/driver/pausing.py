"""Pauses a run: its driver, its session and its claims stay, and no batch begins."""

import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from waybill_spark.driver.run_control import PauseState, RunControl

logger = logging.getLogger(__name__)


class PausableStage(Protocol):
    @property
    def is_paused(self) -> bool: ...

    def set_paused(self, *, paused: bool) -> None: ...

    def move_claims(self) -> None:
        """Let no driver of an earlier run commit a batch any more. Raise StageFailed if this one
        must end.
        """


class Pausing:
    """Follows the orders to a run. `report` is called when the stages are as the newest one says:
    all of them paused after their running batch, or none.

    A driver of an earlier run may be in a batch at that time, where nobody sees it. So the claims
    move before the report: no batch of any run is committed in a pause.
    """

    def __init__(
        self,
        stages: Sequence[PausableStage],
        control: RunControl,
        first: PauseState,
        report: Callable[[PauseState], None],
    ) -> None:
        """`first` counts until an order comes. `stages`: those that go on; the list may change."""
        self._stages = stages
        self._control = control
        self._first = first
        self._report = report
        self._reported: PauseState | None = None

    @property
    def is_wanted(self) -> bool:
        """True if no batch is to begin."""
        return (self._control.pause or self._first).paused

    def follow(self) -> None:
        """Pass the newest order to all stages, and report it when it is carried out."""
        pause = self._control.pause or self._first
        if pause == self._reported:
            return
        for stage in self._stages:
            stage.set_paused(paused=pause.paused)
        if not pause.paused or all(stage.is_paused for stage in self._stages):
            for stage in self._stages if pause.paused else ():
                stage.move_claims()
            logger.info("pipeline is paused" if pause.paused else "pipeline runs")
            self._report(pause)
            self._reported = pause
