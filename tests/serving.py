"""Serves an application on a port of its own, and speaks to such a port in plain bytes."""

import contextlib
import http.client
import socket
import threading
from collections.abc import Iterator

import uvicorn
from starlette.types import ASGIApp

HOST = "127.0.0.1"
WAIT_S = 120.0


@contextlib.contextmanager
def serve(app: ASGIApp) -> Iterator[int]:
    """Serve `app` on a free port, in a thread."""
    listener = socket.create_server((HOST, 0))
    config = uvicorn.Config(app, log_config=None, lifespan="auto", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(WAIT_S)
        listener.close()


def ask(port: int, *lines: str, body: bytes = b"") -> tuple[int, bytes]:
    """Return status and body of the answer to these lines, sent as they are."""
    sent = (*lines, "Connection: close", f"Content-Length: {len(body)}", "", "")
    with socket.create_connection((HOST, port), timeout=WAIT_S) as connection:
        connection.sendall("\r\n".join(sent).encode("latin-1") + body)
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        return answer.status, answer.read()
