"""Decides which event is sent next. Events of one API key to one host are sent one at a time, and
the total is limited. After a missing answer there is a pause, which delays no other host or key."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from waybill_shared.process.signal import loop_time_s
from waybill_status.core.watches.deliveries import Answered

AT_ONCE: Final = 40
SILENT_AT_ONCE: Final = 10  # in addition, of events that got no answer last time
REST_S_MAX: Final = 60.0
TOO_MANY: Final = 429


HostKey = tuple[str, ...]
"""Tenant, API key and host: their events are sent one after the other."""


@dataclass(slots=True)
class _Host:
    one: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0
    rests_until: float = 0.0
    rest_s: float = 0.0


class Permit:
    """A permit to send one event."""

    def __init__(self, host: _Host) -> None:
        self._line = host

    def finish(self, answer: Answered) -> None:
        """Note the answer. A host that gave no answer at all gets a pause, longer each time."""
        host = self._line
        host.rest_s = min(max(1.0, 2 * host.rest_s), REST_S_MAX) if answer.silent else 0.0
        asked_s = answer.retry_after_ms / 1000 if answer.status == TOO_MANY else 0.0
        rest_s = max(host.rest_s, min(asked_s, REST_S_MAX))
        host.rests_until = loop_time_s() + rest_s


class HostPermits:
    """The permits of all hosts; used on the event loop only."""

    def __init__(self) -> None:
        self._hosts: dict[HostKey, _Host] = {}
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._silent = asyncio.Semaphore(SILENT_AT_ONCE)

    @asynccontextmanager
    async def of(self, name: HostKey, wait_s: float, *, silent: bool) -> AsyncIterator[Permit]:
        """Wait for a permit. `silent`: there was no answer last time. Raises TimeoutError if there
        is none in `wait_s`."""
        host = self._hosts.setdefault(name, _Host())
        host.users += 1
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(wait_s):
                    await stack.enter_async_context(host.one)
                    await asyncio.sleep(host.rests_until - loop_time_s())
                    slots = self._silent if silent else self._slots
                    await stack.enter_async_context(slots)
                yield Permit(host)
        finally:
            host.users -= 1
            if not host.users:
                del self._hosts[name]
