"""The clock of an `AsyncClient`, which a test can replace."""

import asyncio
import time
from typing import Protocol

from waybill.waiting import Time


class AsyncTimer(Time, Protocol):
    """A clock that can also sleep."""

    async def sleep(self, seconds: float) -> None: ...


class AsyncSystemTimer:
    """The clock of this machine."""

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
