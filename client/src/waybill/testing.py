"""For tests of code that uses this SDK: an HTTP server with a script, a clock that tests set.

The server listens on 127.0.0.1 only and never judges a request: the test reads `requests`.
"""

import json
import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self
from urllib.parse import parse_qsl, urlsplit

STOP_NOTICED_S = 0.002  # a test with a server should not cost more than one without


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """One answer: `json` or `content`; `cut` ends the connection before all of it was sent."""

    status: int = 200
    json: object = None
    content: bytes = b""
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: bool = False

    @property
    def body(self) -> bytes:
        return self.content if self.json is None else json.dumps(self.json).encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """One request as the server received it."""

    method: str
    path: str
    params: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes


def problem(status: int, detail: str, **members: object) -> Response:
    """Return a problem document as Waybill answers it."""
    body = {"type": f"urn:waybill:problem:{status}", "title": "problem", "status": status}
    return Response(
        status=status,
        json={**body, "detail": detail, **members},
        content_type="application/problem+json",
    )


def event_stream(*outcomes: Mapping[str, object], cut: bool = False) -> Response:
    """Return outcomes as server-sent events.

    The ids count from 1, or are the outcome's `version`.
    """
    events = (
        f"event: outcome\nid: {outcome.get('version', number)}\ndata: {json.dumps(outcome)}\n\n"
        for number, outcome in enumerate(outcomes, start=1)
    )
    content = "".join(events).encode()
    return Response(content=content, content_type="text/event-stream", cut=cut)


class _ManualTime:
    """Time that passes only when somebody sleeps, or the test sets `now`."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def _pass(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


class ManualClock(_ManualTime):
    """A clock for a Client: time passes only when somebody sleeps, or the test sets `now`."""

    def sleep(self, seconds: float) -> None:
        self._pass(seconds)


class AsyncManualClock(_ManualTime):
    """A clock for an AsyncClient: time passes only when somebody sleeps, or the test sets `now`."""

    async def sleep(self, seconds: float) -> None:
        self._pass(seconds)


class ScriptedServer:
    """A server that answers each route with its replies in order, and then repeats the last one."""

    def __init__(self) -> None:
        self.requests: list[Received] = []
        self._replies: dict[tuple[str, str], list[Response]] = defaultdict(list)
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.script = self
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": STOP_NOTICED_S}
        )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def answer(self, method: str, path: str, *replies: Response) -> None:
        self._replies[method, path].extend(replies)

    def asked(self, method: str, path: str) -> Sequence[Received]:
        return [r for r in self.requests if (r.method, r.path) == (method, path)]

    def reply_to(self, received: Received) -> Response:
        self.requests.append(received)
        replies = self._replies.get((received.method, received.path))
        if not replies:
            return problem(404, f"{received.method} {received.path} is not in the script")
        return replies.pop(0) if len(replies) > 1 else replies[0]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    script: ScriptedServer


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def _handle(self) -> None:
        address = urlsplit(self.path)
        received = Received(
            method=self.command,
            path=address.path,
            params=dict(parse_qsl(address.query)),
            headers={name.lower(): value for name, value in self.headers.items()},
            body=self.rfile.read(int(self.headers.get("Content-Length", 0))),
        )
        self._send(self.server.script.reply_to(received))

    def _send(self, reply: Response) -> None:
        self.send_response(reply.status)
        self.send_header("Content-Type", reply.content_type)
        # One byte more than is sent makes the client see a broken connection.
        self.send_header("Content-Length", str(len(reply.body) + (1 if reply.cut else 0)))
        self.send_header("Connection", "close")
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(reply.body)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _handle  # noqa: N815 - names of http.server

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: tests read `requests` instead."""
