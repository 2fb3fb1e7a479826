"""A road to HTTP servers on which answers are lost: what was asked is done, and nobody is told."""

import random
import socket
import socketserver
import threading
from collections.abc import Callable
from typing import Self

END_OF_HEAD = b"\r\n\r\n"
LENGTH = b"content-length:"
TIMEOUT_S = 60.0


class DroppingRoad:
    """`lost` says of each answer whether it is; `to` gives the port that a request goes to."""

    def __init__(self, to: Callable[[], int], lost: Callable[[], bool]) -> None:
        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                request = read_message(self.request)
                closing = request.replace(END_OF_HEAD, b"\r\nConnection: close" + END_OF_HEAD, 1)
                with socket.create_connection(("127.0.0.1", to()), TIMEOUT_S) as server:
                    server.sendall(closing)
                    answer = read_message(server)
                if not lost():
                    self.request.sendall(answer)

            def finish(self) -> None:
                self.request.close()

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            request_queue_size = 512

            def handle_error(self, request: object, client_address: object) -> None:
                """Whoever asked sees that the connection is closed."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"


def read_message(source: socket.socket) -> bytes:
    """One request or answer, whose length its head tells."""
    data = b""
    while END_OF_HEAD not in data:
        data += received(source)
    head, _, body = data.partition(END_OF_HEAD)
    lines = head.lower().splitlines()
    length = next((int(line[len(LENGTH) :]) for line in lines if line.startswith(LENGTH)), 0)
    while len(body) < length:
        body += received(source)
    return head + END_OF_HEAD + body


def received(source: socket.socket) -> bytes:
    piece = source.recv(1 << 16)
    if not piece:
        raise ConnectionError("it was closed")
    return piece


def every(number: int) -> Callable[[], bool]:
    """True each so many times; several threads may ask."""
    lock, asked = threading.Lock(), 0

    def lost() -> bool:
        nonlocal asked
        with lock:
            asked += 1
            return asked % number == 0

    return lost


def sometimes(chance: float, seed: int) -> Callable[[], bool]:
    dice = random.Random(seed)
    return lambda: dice.random() < chance
