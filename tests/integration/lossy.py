"""A way to a broker on which answers can be lost: forwards Kafka's frames, and tampers when told.

Only answers to produce requests and to questions about ends are ever touched. Requests of any kind
can be kept from it.
"""

import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

PRODUCE, LIST_OFFSETS, BROKER_HEARTBEAT = 0, 2, 63
PRODUCE_FLEXIBLE = 9  # the version from which lengths are variable
DUPLICATE_SEQUENCE_NUMBER = 46
NO_OFFSET = -1
HEADER = struct.Struct(">hhi")
Asked = dict[int, tuple[int, int]]
"""Kind and version of each request that waits for its answer, by its correlation id."""


class LossyRoad:
    """Listens on `port` and passes on to `target`. What is lost closes its connection, too."""

    def __init__(self, target: int) -> None:
        self.lost = 0
        self.forgotten = 0
        self._target = target
        self._lose: dict[int, int] = {PRODUCE: 0, LIST_OFFSETS: 0}
        self._forget = 0
        self._closed: set[int] = set()
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for each in list(self._sockets):
            _cut(each)

    def lose(self, kind: int, times: int = 1) -> None:
        """The next answers of this kind: the broker has done it, the client never hears of it."""
        with self._lock:
            self._lose[kind] = times

    def forget(self, times: int = 1) -> None:
        """The next produce answers that pass say what a broker says that has the records, but no
        longer knows where."""
        with self._lock:
            self._forget = times

    def close_to(self, kind: int) -> None:
        """Requests of this kind do not arrive, and nobody is told."""
        self._closed.add(kind)

    def open_to(self, kind: int) -> None:
        self._closed.discard(kind)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._target))
                self._sockets |= {client, server}
                asked: Asked = {}
                self._start(self._requests, client, server, asked)
                self._start(self._answers, client, server, asked)

    def _requests(self, client: socket.socket, server: socket.socket, asked: Asked) -> None:
        with suppress(OSError):
            while frame := _frame(client):
                kind, version, correlation = HEADER.unpack_from(frame)
                if kind not in self._closed:
                    asked[correlation] = (kind, version)
                    server.sendall(_framed(frame))
        _cut(client)
        _cut(server)

    def _answers(self, client: socket.socket, server: socket.socket, asked: Asked) -> None:
        with suppress(OSError):
            while frame := _frame(server):
                (correlation,) = struct.unpack_from(">i", frame)
                kind, version = asked.pop(correlation)
                if self._is_lost(kind):
                    break
                client.sendall(_framed(self._told(kind, version, frame)))
        _cut(client)
        _cut(server)

    def _is_lost(self, kind: int) -> bool:
        with self._lock:
            lost = self._lose.get(kind, 0) > 0
            if lost:
                self._lose[kind] -= 1
                self.lost += 1
            return lost

    def _told(self, kind: int, version: int, frame: bytes) -> bytes:
        with self._lock:
            if kind != PRODUCE or not self._forget:
                return frame
            self._forget -= 1
            self.forgotten += 1
        return _without_offset(frame, version)

    def _start(self, run: Callable[..., None], *arguments: object) -> None:
        threading.Thread(target=run, args=arguments, daemon=True).start()


def _frame(source: socket.socket) -> bytes:
    """The next frame without its length; empty when the connection has ended."""
    size = _exactly(source, 4)
    return _exactly(source, struct.unpack(">i", size)[0]) if size else b""


def _exactly(source: socket.socket, size: int) -> bytes:
    taken = bytearray()
    while len(taken) < size:
        piece = source.recv(size - len(taken))
        if not piece:
            return b""
        taken += piece
    return bytes(taken)


def _framed(frame: bytes) -> bytes:
    return struct.pack(">i", len(frame)) + frame


def _cut(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()


def _without_offset(frame: bytes, version: int) -> bytes:
    """An answer for one partition of one topic, turned into "duplicate, I do not know where"."""
    assert version >= PRODUCE_FLEXIBLE
    at = 4 + 1  # correlation id, no tagged fields
    topics, name_size = frame[at] - 1, frame[at + 1] - 1
    at += 2 + name_size
    partitions = frame[at] - 1
    assert (topics, partitions) == (1, 1)
    at += 1 + 4  # the partition's number
    forgotten = struct.pack(">hq", DUPLICATE_SEQUENCE_NUMBER, NO_OFFSET)
    return frame[:at] + forgotten + frame[at + len(forgotten) :]
