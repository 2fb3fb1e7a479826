"""A scene in which each event is due at once, and what receivers say."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from unit.status.watching import Scene, scene
from unit.status.worlds import DONE
from waybill_status.core.watches.deliveries import Answered

HOOK = "https://hooks.example/a?key=1"
BUSY = Answered(status=503, error="it answered 503")
SILENT = Answered(error="nobody answers", silent=True)


@asynccontextmanager
async def done() -> AsyncIterator[Scene]:
    """A scene in which all tokens are final."""
    async with scene() as s:
        s.store.put(DONE, version=1)
        yield s


async def delivered(s: Scene, count: int) -> None:
    while sum(not each.due for each in s.log.deliveries) < count:
        await asyncio.sleep(0.005)
    await s.quiet()
