"""The small HTTP face of a worker: /healthz, /readyz, /metrics, /version. Never takes work, and
asks for a key where the HTTP services do."""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from waybill_shared.access.authentication import KeysInForce
from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.hosts import LOOPBACK_ONLY, AllowedHosts
from waybill_shared.contract.problems import HEADERS_OF, PROBLEM_JSON, Slug, problem_body
from waybill_shared.contract.routes import OPERATIONS
from waybill_shared.contract.version import VERSION
from waybill_shared.process import metrics
from waybill_shared.process.health import Health, ready


@contextmanager
def serve_monitor(
    host: str,
    port: int,
    service: str,
    health: Health,
    keys: KeysInForce | None = None,
    *,
    hosts: AllowedHosts = LOOPBACK_ONLY,
) -> Iterator[None]:
    """Serve the pages. Without `keys` all who reach the port by one of `hosts` may read them."""
    if keys:
        health.checks["api_keys"] = keys.check
    face = _Face(service=service, health=health, keys=keys, hosts=hosts)
    server = ThreadingHTTPServer((host, port), _handler(face))
    thread = threading.Thread(target=server.serve_forever, name="monitor", daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Face:
    """The answer at a path: status, content type, body."""

    service: str
    health: Health
    keys: KeysInForce | None
    hosts: AllowedHosts

    def answer(
        self, path: str, authorization: str, called: Sequence[str]
    ) -> tuple[int, str, bytes]:
        """Return status, content type and body of the answer. `called` are the headers `Host`."""
        try:
            scope = OPERATIONS.get(path)
            if self.keys is None:
                self.hosts.require(called)
            elif scope is not None:
                self.keys.require(authorization, scope)
            if path == "/metrics":
                text = metrics.text_of(self.service, self.health.readiness())
                return 200, metrics.CONTENT_TYPE, text
            status, content = self._content(path)
            return status, "application/json", json.dumps(content).encode()
        except Refusal as refusal:
            return refusal.slug.status, PROBLEM_JSON, json.dumps(problem_body(refusal)).encode()

    def _content(self, path: str) -> tuple[int, object]:
        match path:
            case "/healthz":
                alive = self.health.alive()
                return 200 if alive else 503, {"alive": alive}
            case "/readyz":
                readiness = self.health.readiness()
                return 200 if ready(readiness) else 503, readiness
            case "/version":
                return 200, {"service": self.service, "version": VERSION}
            case _:
                raise Refusal(Slug.NOT_FOUND, "this worker serves health and metrics only")


def _handler(face: _Face) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path, authorization = self.path.partition("?")[0], self.headers.get("Authorization", "")
            called = self.headers.get_all("Host", [])
            status, content_type, body = face.answer(path, authorization, called)
            self.send_response(status)
            for name, value in HEADERS_OF.get(status, {}).items():
                self.send_header(name, value)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            with suppress(ConnectionError):  # who asked waited no longer
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing: health checks are not worth a line."""

    return Handler
