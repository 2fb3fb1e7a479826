"""Whose turn it is to be sent something: one at a time per host, and so many in all. A host that
does not answer has pauses, and holds up no other."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from waybill_status.core.deliveries import Answered

AT_ONCE: Final = 40
SILENT_AT_ONCE: Final = 10  # beside these, of events that were not answered last time
REST_S_MAX: Final = 60.0
TOO_MANY: Final = 429


@dataclass(slots=True)
class _Host:
    one: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0
    rests_until: float = 0.0
    rest_s: float = 0.0


class HostTurn:
    def __init__(self, host: _Host) -> None:
        self._host = host

    def ended(self, answer: Answered) -> None:
        """One that gave no answer at all rests, longer each time."""
        host = self._host
        host.rest_s = min(max(1.0, 2 * host.rest_s), REST_S_MAX) if answer.silent else 0.0
        asked_s = answer.retry_after_ms / 1000 if answer.status == TOO_MANY else 0.0
        rest_s = max(host.rest_s, min(asked_s, REST_S_MAX))
        host.rests_until = asyncio.get_running_loop().time() + rest_s


class Turns:
    """Lives on the loop."""

    def __init__(self) -> None:
        self._hosts: dict[str, _Host] = {}
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._silent = asyncio.Semaphore(SILENT_AT_ONCE)

    @asynccontextmanager
    async def of(self, name: str, wait_s: float, *, silent: bool) -> AsyncIterator[HostTurn]:
        """`silent`: it gave no answer last time. TimeoutError when there is no turn in `wait_s`."""
        host = self._hosts.setdefault(name, _Host())
        host.users += 1
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(wait_s):
                    await stack.enter_async_context(host.one)
                    await asyncio.sleep(host.rests_until - asyncio.get_running_loop().time())
                    slots = self._silent if silent else self._slots
                    await stack.enter_async_context(slots)
                yield HostTurn(host)
        finally:
            host.users -= 1
            if not host.users:
                del self._hosts[name]
