"""Refuses requests that call a service by a name that is not its own.

It does so before anything else looks at them, for all paths: routes, pages, streams, probes, and
paths that do not exist.
"""

from starlette.types import ASGIApp, Receive, Scope, Send

from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.hosts import AllowedHosts
from waybill_shared.http.dialects import refuse


class HostGuard:
    """Middleware inside of `RequestIds`. What is not HTTP passes: no route is a WebSocket."""

    def __init__(self, app: ASGIApp, hosts: AllowedHosts) -> None:
        self.app = app
        self.hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            given = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
            try:
                self.hosts.require(given)
            except Refusal as refusal:
                own = scope["waybill.request_id"]
                answer = refuse(refusal, path=scope["path"], request_id=own)
                await answer(scope, receive, send)
                return
        await self.app(scope, receive, send)
