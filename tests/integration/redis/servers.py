"""Valkey servers that can be killed, put back and cut off, and an address that outlives them."""

import shutil
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil
import redis

from integration.waiting import eventually
from waybill_local import valkey
from waybill_local.folders import make_private
from waybill_local.ports import HOST, pick
from waybill_local.processes import Child, kill_group, start

PIECE_BYTES = 65_536


class Valkey:
    """One server with a folder of its own, as the local stack runs it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "data"
        self.port = pick({"valkey": 0})["valkey"]
        self._logs = make_private(folder / "logs")
        self._child: Child | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    def start(self) -> None:
        spec = valkey.spec(self.folder, self.port)
        self._child = start(spec, self._logs)
        eventually(lambda: spec.wrong() is None)

    def kill(self) -> None:
        if self._child is not None:
            kill_group(self._child.process.pid)
            self._child.process.wait()
            self._child = None

    @contextmanager
    def client(self) -> "Iterator[redis.Redis]":
        with redis.Redis(host=HOST, port=self.port) as client:
            yield client

    def copy_to(self, folder: Path) -> None:
        """What the disk holds once everything that is written now has come there."""
        with self.client() as client:
            client.set("copied", "1")
            client.waitaof(1, 0, 10_000)
        shutil.copytree(self.folder, folder)

    def put_back(self, folder: Path) -> None:
        shutil.rmtree(self.folder)
        shutil.copytree(folder, self.folder)


class Switch:
    """A stable address before servers that change. Every change cuts the connections there are."""

    def __init__(self, target: int | None) -> None:
        self._target = target
        self._sockets: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._listener = socket.create_server((HOST, 0))
        self.port = int(self._listener.getsockname()[1])

    @property
    def url(self) -> str:
        return f"redis://{HOST}:{self.port}/0"

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.point_to(None)

    def point_to(self, target: int | None) -> None:
        """None: whoever comes is turned away."""
        with self._lock:
            self._target = target
            left, self._sockets = self._sockets, set()
        for each in left:
            _cut(each)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                self._connect(self._listener.accept()[0])

    def _connect(self, client: socket.socket) -> None:
        with self._lock:
            if self._target is None:
                _cut(client)
                return
            try:
                server = socket.create_connection((HOST, self._target))
            except OSError:
                _cut(client)
                return
            self._sockets |= {client, server}
        for one, other in ((client, server), (server, client)):
            threading.Thread(target=_pass_on, args=(one, other), daemon=True).start()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while piece := source.recv(PIECE_BYTES):
            target.sendall(piece)
    _cut(source)
    _cut(target)


def _cut(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()


@contextmanager
def paused(pid: int) -> Iterator[None]:
    """The process stands still, as one that the system has not scheduled for long."""
    process = psutil.Process(pid)
    process.send_signal(signal.SIGSTOP)
    try:
        eventually(lambda: process.status() == psutil.STATUS_STOPPED)
        yield
    finally:
        process.send_signal(signal.SIGCONT)
