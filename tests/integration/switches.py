"""An address that outlives the servers behind it, and can be cut off from them."""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Self

from waybill_local.ports import HOST

PIECE_BYTES = 65_536


class Switch:
    """Listens on `port` and passes on to `target`; when that changes, it cuts what is connected."""

    def __init__(self, target: int | None) -> None:
        self._target = target
        self._sockets: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._listener = socket.create_server((HOST, 0))
        self.port = int(self._listener.getsockname()[1])

    def __enter__(self) -> Self:
        start(self._accept)
        return self

    def __exit__(self, *exc: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.point_to(None)

    def point_to(self, target: int | None) -> None:
        """None: whoever comes is turned away."""
        with self._lock:
            self._target = target
            left, self._sockets = self._sockets, set()
        for each in left:
            cut(each)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                self._connect(self._listener.accept()[0])

    def _connect(self, client: socket.socket) -> None:
        with self._lock:
            if self._target is None:
                cut(client)
                return
            try:
                server = socket.create_connection((HOST, self._target))
            except OSError:
                cut(client)
                return
            self._sockets |= {client, server}
        self.forward(client, server)

    def forward(self, client: socket.socket, server: socket.socket) -> None:
        start(_pass_on, client, server)
        start(_pass_on, server, client)


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while piece := source.recv(PIECE_BYTES):
            target.sendall(piece)
    cut(source)
    cut(target)


def cut(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()


def start(run: Callable[..., None], *arguments: object) -> None:
    threading.Thread(target=run, args=arguments, daemon=True).start()
