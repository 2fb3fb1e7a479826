"""A way to a broker on which answers can be lost: forwards Kafka's frames, and tampers when told.

Only answers to produce requests and to questions about ends are ever touched. Requests of any kind
can be kept from it.
"""

import socket
import struct
from contextlib import suppress

from integration.switches import Switch, cut, start

PRODUCE, LIST_OFFSETS, WRITE_TXN_MARKERS = 0, 2, 27
FETCH, VOTE, ENVELOPE, FETCH_SNAPSHOT, BROKER_HEARTBEAT = 1, 52, 58, 59, 63  # of controllers
PRODUCE_FLEXIBLE = 9  # the version from which lengths are variable
DUPLICATE_SEQUENCE_NUMBER = 46
NO_OFFSET = -1
HEADER = struct.Struct(">hhi")
Asked = dict[int, tuple[int, int]]
"""Kind and version of each request that waits for its answer, by its correlation id."""


class LossyRoad(Switch):
    """An answer that is lost closes its connection, too."""

    def __init__(self, target: int) -> None:
        super().__init__(target)
        self.lost = 0
        self.forgotten = 0
        self._lose: dict[int, int] = {PRODUCE: 0, LIST_OFFSETS: 0}
        self._forget = 0
        self._closed: set[int] = set()

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

    def forward(self, client: socket.socket, server: socket.socket) -> None:
        asked: Asked = {}
        start(self._requests, client, server, asked)
        start(self._answers, client, server, asked)

    def _requests(self, client: socket.socket, server: socket.socket, asked: Asked) -> None:
        with suppress(OSError):
            while frame := _frame(client):
                kind, version, correlation = HEADER.unpack_from(frame)
                if kind not in self._closed:
                    asked[correlation] = (kind, version)
                    server.sendall(_framed(frame))
        cut(client)
        cut(server)

    def _answers(self, client: socket.socket, server: socket.socket, asked: Asked) -> None:
        with suppress(OSError):
            while frame := _frame(server):
                (correlation,) = struct.unpack_from(">i", frame)
                kind, version = asked.pop(correlation)
                if self._is_lost(kind):
                    break
                client.sendall(_framed(self._told(kind, version, frame)))
        cut(client)
        cut(server)

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
