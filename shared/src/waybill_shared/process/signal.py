"""Wakes the tasks that wait for something to change in this process. It carries no data. It also
has the clock of such waits."""

import asyncio


def loop_time_s() -> float:
    """Return the time of the running event loop. It never goes back."""
    return asyncio.get_running_loop().time()


class Signal:
    def __init__(self) -> None:
        self._event = asyncio.Event()

    def notify(self) -> None:
        """Wake all that wait now; called on the loop."""
        self._event.set()
        self._event = asyncio.Event()

    async def wait(self, timeout_s: float) -> bool:
        """Wait for a notification. Return True if there was one in time."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._event.wait()
        except TimeoutError:
            return False
        return True
