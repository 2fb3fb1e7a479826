"""The SDK's `AsyncClient`: every question to Waybill as a method.

Never repeats what changes something, except a `send`, which has a key: what is sent twice is kept
once.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Self

from waybill.aio.clock import AsyncSystemTimer, AsyncTimer
from waybill.aio.connection import AsyncConnection
from waybill.aio.manifests import AsyncManifestCalls
from waybill.aio.pipelines import AsyncPipelineCalls
from waybill.aio.records import AsyncRecordCalls
from waybill.aio.watches import AsyncWatchCalls
from waybill.target import find_api_key, find_target
from waybill.waiting import REPEAT_S, TIMEOUT_S

if TYPE_CHECKING:
    import httpx2


class AsyncClient(AsyncRecordCalls, AsyncPipelineCalls, AsyncManifestCalls, AsyncWatchCalls):
    """Talks to one Waybill from an event loop; use it as an asynchronous context manager.

    async with AsyncClient() as client:
        receipt = await client.send("orders", "orders", [{"order_id": 1}])
        outcome = await receipt.token.wait(timeout_s=30)

    Each request ends after `timeout_s` of silence with NoAnswer, at latest. Besides what a method
    names, all of them raise Unreachable, NotAllowed (no API key, or one that may not do this),
    NotReady (try again after `retry_after_s`) and UnexpectedAnswer. Tasks may share a client.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        api_key: str | None = None,
        timeout_s: float = TIMEOUT_S,
        repeat_s: float = REPEAT_S,
        transport: "httpx2.AsyncBaseTransport | None" = None,
        clock: AsyncTimer | None = None,
    ) -> None:
        """`url`: else WAYBILL_URL, else the stack around the folder, else 127.0.0.1:8080.

        `repeat_s`: so long a `send` is repeated when no answer comes, or Waybill is not ready; 0:
        never, and it has no key then.

        `api_key`: else WAYBILL_API_KEY, else none is sent. `transport` and `clock` are for tests.
        """
        connection = AsyncConnection(
            find_target(url, os.environ, Path.cwd()),
            timeout_s=timeout_s,
            api_key=find_api_key(api_key, os.environ),
            transport=transport,
        )
        super().__init__(connection, clock or AsyncSystemTimer(), repeat_s)

    @property
    def url(self) -> str:
        """Where it talks to."""
        return self._connection.line.target.url

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close its connections; tokens that it made stay good, as text."""
        await self._connection.close()
