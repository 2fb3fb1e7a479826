"""Forwards one HTTP request to a service, streams both ways, and ends when its caller disconnects.

Buffers nothing and retries nothing. The answer of a service is passed on as it is.
"""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, field

import httpx2
from starlette.types import Receive, Scope, Send

from waybill_local.ports import HOST, address
from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.problems import Slug
from waybill_shared.http.dialects import refuse
from waybill_shared.http.feldera import is_write

CONNECT_TIMEOUT_S = 5.0
# Longer than any long poll may last, and than the pause between two pings of a stream.
READ_TIMEOUT_S = 120.0
WRITE_TIMEOUT_S = 60.0
POOL_SIZE_IDLE = 64
# Shorter than a server keeps idle connections: none is reused just as the server closes it.
IDLE_S = 2.0

_HOP_BY_HOP = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization te trailer trailers"
    b" transfer-encoding upgrade proxy-connection".split()
)
_SET_HERE = frozenset(b"expect x-request-id x-forwarded-for x-forwarded-host".split())


class Disconnected(Exception):
    """The caller disconnected in the middle of its request."""


@dataclass(slots=True, kw_only=True)
class Upstreams:
    """The services by name, and the connections to them.

    A request that waits gets a connection of its own. A pool looks at all its connections on every
    request: thousands of waiters in it would make every request slow.
    """

    ports: Mapping[str, int]
    read_timeout_s: float = READ_TIMEOUT_S
    _tls: ssl.SSLContext = field(default_factory=lambda: ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
    _pool: httpx2.AsyncHTTPTransport | None = None

    @contextlib.asynccontextmanager
    async def transport(self, *, waits: bool) -> AsyncIterator[httpx2.AsyncHTTPTransport]:
        if waits:
            async with self._transport() as own:
                yield own
            return
        if self._pool is None:
            self._pool = self._transport()
        yield self._pool

    @property
    def timeouts(self) -> dict[str, float]:
        return {
            "connect": CONNECT_TIMEOUT_S,
            "read": self.read_timeout_s,
            "write": WRITE_TIMEOUT_S,
            "pool": CONNECT_TIMEOUT_S,
        }

    async def aclose(self) -> None:
        if self._pool is not None:
            await self._pool.aclose()

    def _transport(self) -> httpx2.AsyncHTTPTransport:
        limits = httpx2.Limits(
            max_connections=None,
            max_keepalive_connections=POOL_SIZE_IDLE,
            keepalive_expiry=IDLE_S,
        )
        # Making a TLS context costs more than the whole exchange, and none is ever used here.
        return httpx2.AsyncHTTPTransport(verify=self._tls, trust_env=False, limits=limits)


async def forward(
    upstreams: Upstreams, service: str, scope: Scope, receive: Receive, send: Send
) -> None:
    """Answer this request with the answer of `service`.

    If the caller disconnects, the request to the service is cancelled.
    """
    body = _Body(receive, scope)
    exchange = asyncio.ensure_future(_exchange(upstreams, service, scope, body, send))
    gone = asyncio.ensure_future(body.await_disconnect())
    try:
        await asyncio.wait((exchange, gone), return_when=asyncio.FIRST_COMPLETED)
        if exchange.done():
            await exchange
    except Disconnected:
        return
    finally:
        for task in (exchange, gone):
            task.cancel()
        await asyncio.gather(exchange, gone, return_exceptions=True)


async def _exchange(
    upstreams: Upstreams, service: str, scope: Scope, body: "_Body", send: Send
) -> None:
    started = False
    try:
        async with upstreams.transport(waits=_waits(scope)) as transport:
            request = _request(scope, body, upstreams, service)
            response = await transport.handle_async_request(request)
            async with contextlib.aclosing(response):
                started = True
                await _answer(response, send)
    except httpx2.TransportError as error:
        if not started:
            await _send_problem(service, upstreams.ports[service], error, scope, send)
        # Else the answer stays incomplete, by which the caller sees that it was cut off.


def _request(scope: Scope, body: "_Body", upstreams: Upstreams, service: str) -> httpx2.Request:
    target = scope["raw_path"]
    if scope["query_string"]:
        target += b"?" + scope["query_string"]
    headers = [
        *_end_to_end(scope["headers"], without=_SET_HERE),
        (b"x-request-id", scope["waybill.request_id"].encode("latin-1")),
        (b"x-forwarded-for", scope["client"][0].encode() if scope["client"] else b"unknown"),
        (b"x-forwarded-host", dict(scope["headers"]).get(b"host", b"")),
    ]
    return httpx2.Request(
        scope["method"],
        httpx2.URL(scheme="http", host=HOST, port=upstreams.ports[service], raw_path=target),
        headers=headers,
        content=body if body.expected else None,
        extensions={"timeout": upstreams.timeouts},
    )


async def _answer(response: httpx2.Response, send: Send) -> None:
    # The answer's own request id is left out: the gateway adds the same one to every answer.
    headers = list(_end_to_end(response.headers.raw, without={b"x-request-id"}))
    start = {"type": "http.response.start", "status": response.status_code, "headers": headers}
    await send(start)
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    async for chunk in response.stream:
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _send_problem(
    service: str, port: int, error: httpx2.TransportError, scope: Scope, send: Send
) -> None:
    late = isinstance(error, httpx2.TimeoutException)
    slug = Slug.SERVICE_TIMEOUT if late else Slug.SERVICE_UNREACHABLE
    if is_write(scope["path"]) and not isinstance(
        error, httpx2.ConnectError | httpx2.ConnectTimeout
    ):
        slug = Slug.WRITTEN_PERHAPS
    refusal = Refusal(
        slug,
        f"{service} at {address(port)} {'did not answer in time' if late else 'is not reachable'}"
        f": {error or type(error).__name__}",
        service=service,
        hint=f"`waybill ps` shows its state, .waybill/logs/{service}.log what happened",
    )
    answer = refuse(refusal, path=scope["path"], request_id=scope["waybill.request_id"])
    await answer(scope, _nothing, send)


async def _nothing() -> dict[str, str]:
    return {"type": "http.disconnect"}


def _waits(scope: Scope) -> bool:
    accepts = dict(scope["headers"]).get(b"accept", b"")
    return b"wait=" in scope["query_string"] or b"text/event-stream" in accepts


def _end_to_end(
    headers: Iterable[tuple[bytes, bytes]], *, without: Iterable[bytes]
) -> Iterable[tuple[bytes, bytes]]:
    """Return the headers that are for the other end, without those for one connection only.

    Spaces around a value are removed: they are no part of it, and some servers pass them on.
    """
    lowered = [(name.lower(), value.strip(b" \t")) for name, value in headers]
    named = [value for name, value in lowered if name == b"connection"]
    dropped = _HOP_BY_HOP.union(
        without, *([word.strip().lower() for word in value.split(b",")] for value in named)
    )
    return ((name, value) for name, value in lowered if name not in dropped)


class _Body:
    """The caller's body as it arrives. `await_disconnect` returns when the caller is away."""

    def __init__(self, receive: Receive, scope: Scope) -> None:
        names = {name for name, _ in scope["headers"]}
        self.expected = b"content-length" in names or b"transfer-encoding" in names
        self._receive = receive
        self._read = asyncio.Event()
        if not self.expected:
            self._read.set()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while not self._read.is_set():
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise Disconnected
            if not message.get("more_body", False):
                self._read.set()
            if chunk := message.get("body", b""):
                yield chunk

    async def await_disconnect(self) -> None:
        await self._read.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass
