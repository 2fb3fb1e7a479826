"""The orders that may come to a run: to stop, to pause, to continue, and to start stages."""

import threading
from collections import deque
from typing import NamedTuple

from waybill_shared.contract.commands import StopMode


class PauseState(NamedTuple):
    """The wanted pause of a run, and the number of the order that said so. 0: no order did."""

    paused: bool
    order: int


class StageStarts(NamedTuple):
    """Stopped stages that are to be started, and the number of the order that said so."""

    stages: tuple[str, ...]
    order: int


class RunControl(threading.Event):
    """Set when a run is to stop. `mode` says how. `pause` is the newest order about its batches."""

    def __init__(self) -> None:
        super().__init__()
        self.mode = StopMode.CHECKPOINT
        self.pause: PauseState | None = None
        """None: no order came; the run is as its spec says."""
        self._starts: deque[StageStarts] = deque()
        self._news = threading.Event()

    def stop(self, mode: StopMode) -> None:
        """Ask the run to stop. A stronger request overtakes one that was made before."""
        if not self.is_set() or mode.is_stronger_than(self.mode):
            self.mode = mode
        self.set()
        self._news.set()

    def set_paused(self, pause: PauseState) -> None:
        """Ask the run to begin no batch, or to begin them again."""
        self.pause = pause
        self._news.set()

    def start_stages(self, starts: StageStarts) -> None:
        """Ask the run to start stages that are stopped."""
        self._starts.append(starts)
        self._news.set()

    def next_starts(self) -> StageStarts | None:
        """Return the next order to start stages; None if there is none."""
        return self._starts.popleft() if self._starts else None

    def wait_for_order(self, timeout_s: float) -> None:
        """Wait until an order comes, at most for this time."""
        self._news.wait(timeout_s)
        self._news.clear()
