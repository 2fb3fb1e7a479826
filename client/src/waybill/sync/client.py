# Made by `python -m infra.client.render` from waybill/aio: change that.
"""The SDK's `Client`: each question to Waybill is a method.

It never repeats a request that changes something, with two exceptions. A request with a key, such
as `send`, may be repeated: what is sent twice is kept once. So may a request to which Waybill
answers that nothing was done and that it will be ready in a moment.
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
    """A connection to one Waybill; use it as a context manager.

    with Client() as client:
        receipt = client.send("orders", "orders", [{"order_id": 1}])
        outcome = receipt.token.wait(timeout_s=30)

    Each request ends with NoAnswer after `timeout_s` without an answer, at the latest. Besides the
    errors that a method names, each method may raise Unreachable, NotAllowed (no API key, or one
    that may not do this), NotReady (try again after `retry_after_s`) and UnexpectedAnswer.

    Threads may share a client.
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
        """Choose the Waybill to use; nothing is sent yet.

        `url`: without it WAYBILL_URL, then the context that is named or in use, then the stack
        around the folder, then 127.0.0.1:8080. `api_key`: without it WAYBILL_API_KEY; without both,
        none is sent. `repeat_s`: for so long a `send` is repeated when no answer comes, or Waybill
        is not ready. With 0 it is never repeated, and has no key of its own. `transport` and
        `clock` are for tests.
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
        """The URL of the Waybill that this client talks to."""
        return self._connection.line.target.url

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; tokens that the client made stay valid, as text."""
        self._connection.close()
