# Made by `python -m infra.client.render` from waybill/aio: change that.
"""The SDK's `Client`: every question to Waybill as a method.

Never repeats what changes something, except a `send`, which has a key: what is sent twice is kept
once.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Self

from waybill.sync.clock import SystemTimer, Timer
from waybill.sync.connection import Connection
from waybill.sync.manifests import ManifestCalls
from waybill.sync.pipelines import PipelineCalls
from waybill.sync.records import RecordCalls
from waybill.sync.watches import WatchCalls
from waybill.target import find_api_key, find_target
from waybill.waiting import REPEAT_S, TIMEOUT_S

if TYPE_CHECKING:
    import httpx2


class Client(RecordCalls, PipelineCalls, ManifestCalls, WatchCalls):
    """Talks to one Waybill; use it as a context manager.

    with Client() as client:
        receipt = client.send("orders", "orders", [{"order_id": 1}])
        outcome = receipt.token.wait(timeout_s=30)

    Each request ends after `timeout_s` of silence with NoAnswer, at latest. Besides what a method
    names, all of them raise Unreachable, NotAllowed (no API key, or one that may not do this),
    NotReady (try again after `retry_after_s`) and UnexpectedAnswer. Threads may share a client.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        api_key: str | None = None,
        timeout_s: float = TIMEOUT_S,
        repeat_s: float = REPEAT_S,
        transport: "httpx2.BaseTransport | None" = None,
        clock: Timer | None = None,
    ) -> None:
        """`url`: else WAYBILL_URL, else the stack around the folder, else 127.0.0.1:8080.

        `repeat_s`: so long a `send` is repeated when no answer comes, or Waybill is not ready; 0:
        never, and it has no key then.

        `api_key`: else WAYBILL_API_KEY, else none is sent. `transport` and `clock` are for tests.
        """
        connection = Connection(
            find_target(url, os.environ, Path.cwd()),
            timeout_s=timeout_s,
            api_key=find_api_key(api_key, os.environ),
            transport=transport,
        )
        super().__init__(connection, clock or SystemTimer(), repeat_s)

    @property
    def url(self) -> str:
        """Where it talks to."""
        return self._connection.line.target.url

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Close its connections; tokens that it made stay good, as text."""
        self._connection.close()
