"""Remembers the newest answers to commands, and lets requests wait for them.

How old they are is not looked at: their times are by the clocks of runners, and the topic keeps an
hour.
"""

import asyncio
from collections import OrderedDict

from waybill_shared.contract.callers import Caller
from waybill_shared.contract.events import Reply
from waybill_status.app.signal import Signal

KEPT_MAX = 10_000  # some MB


class Replies:
    """Lives on the loop: `take`, `get` and `wait` are called there."""

    def __init__(self) -> None:
        self._by_id: OrderedDict[tuple[str, str], Reply] = OrderedDict()
        self._changed = Signal()
        self._closing = False

    def take(self, reply: Reply) -> None:
        self._by_id[reply.tenant, reply.id] = reply
        if len(self._by_id) > KEPT_MAX:
            self._by_id.popitem(last=False)
        self._changed.notify()

    def get(self, caller: Caller, id: str) -> Reply | None:
        return self._by_id.get((caller.tenant, id))

    async def wait(self, caller: Caller, id: str, wait_s: float) -> Reply | None:
        """The answer as soon as it is there; None when the time is over first."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + wait_s
        while (reply := self.get(caller, id)) is None and not self._closing:
            left_s = deadline - loop.time()
            if left_s <= 0:
                return None
            await self._changed.wait(left_s)
        return reply

    def close(self) -> None:
        """Let every waiting request answer what it knows."""
        self._closing = True
        self._changed.notify()
