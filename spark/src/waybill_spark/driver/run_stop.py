"""The order to stop a run, which may come while it runs."""

import threading

from waybill_shared.contract.commands import StopMode


class RunStop(threading.Event):
    """Set when a run is to stop. `mode` says how."""

    mode: StopMode = StopMode.CHECKPOINT

    def request(self, mode: StopMode) -> None:
        """Ask the run to stop. A stronger request overtakes one that was made before."""
        if not self.is_set() or mode.is_stronger_than(self.mode):
            self.mode = mode
        self.set()
