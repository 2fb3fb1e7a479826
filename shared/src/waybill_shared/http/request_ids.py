"""The id of each request, and the measurement of its answer. Needs Starlette only."""

import random
import time

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from waybill_shared.process import metrics


def request_id(request: Request) -> str:
    """Return the id of this request: the caller's, if one was sent, else ours."""
    return str(request.scope["waybill.request_id"])


class RequestIds:
    """Gives every request an id, echoes it, and counts the answer."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        sent = dict(scope["headers"]).get(b"x-request-id", b"")[:128].decode("latin-1")
        own = sent if sent.isprintable() and sent else f"{random.getrandbits(128):032x}"
        scope["waybill.request_id"] = own
        started = time.perf_counter()

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"x-request-id", own.encode("latin-1"))]
                _measure(scope, message["status"], time.perf_counter() - started)
            await send(message)

        await self.app(scope, receive, send_with_id)


def _measure(scope: Scope, status: int, elapsed_s: float) -> None:
    """Measure a request. All paths and methods without a route count as one, because callers may
    make up any number of them.
    """
    matched = scope.get("route")
    route = getattr(matched, "path", "unmatched")
    known = scope["method"] in (getattr(matched, "methods", None) or ())
    method = scope["method"] if known else "other"
    metrics.count("waybill_http_requests_total", route=route, method=method, status=str(status))
    if b"wait=" not in scope["query_string"] and "waybill.held" not in scope:
        metrics.observe("waybill_http_request_seconds", elapsed_s, route=route, method=method)
