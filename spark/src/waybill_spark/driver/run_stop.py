"""The order to stop a run, which may come while it runs."""

import threading

from waybill_shared.contract.commands import StopMode


class RunStop(threading.Event):
    """Set when a run is to stop. `mode` says how."""

    mode: StopMode = StopMode.CHECKPOINT
