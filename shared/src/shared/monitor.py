"""The small HTTP face of a worker: /healthz, /readyz, /metrics, /version. Never takes work."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from prometheus_client import generate_latest

from shared.health import Health, ready
from shared.version import VERSION


@contextmanager
def serve_monitor(host: str, port: int, service: str, health: Health) -> Iterator[None]:
    server = ThreadingHTTPServer((host, port), _handler(service, health))
    thread = threading.Thread(target=server.serve_forever, name="monitor", daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(service: str, health: Health) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            match self.path.partition("?")[0]:
                case "/healthz":
                    alive = health.alive()
                    self._answer(200 if alive else 503, {"alive": alive})
                case "/readyz":
                    readiness = health.readiness()
                    self._answer(200 if ready(readiness) else 503, readiness)
                case "/version":
                    self._answer(200, {"service": service, "version": VERSION})
                case "/metrics":
                    self._send(200, "text/plain; version=0.0.4", generate_latest())
                case _:
                    self._answer(404, {"detail": "this worker serves health and metrics only"})

        def _answer(self, status: int, body: object) -> None:
            self._send(status, "application/json", json.dumps(body).encode())

        def _send(self, status: int, content_type: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Health checks are not worth a line."""

    return Handler
