# Made by `python -m infra.client.render` from waybill/aio: change that.
"""The clock of a `Client`, which a test can replace."""

import time
from typing import Protocol

from waybill.waiting import Time


class Timer(Time, Protocol):
    """A clock that can also sleep."""

    def sleep(self, seconds: float) -> None: ...


class SystemTimer:
    """The clock of this machine."""

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)
