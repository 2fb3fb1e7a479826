"""Picks loopback ports: the wanted one if it is free, else one that the system offers."""

import contextlib
import socket
from collections.abc import Mapping
from contextlib import ExitStack

import psutil

HOST = "127.0.0.1"


def pick(wanted: Mapping[str, int]) -> dict[str, int]:
    """One free port per name; 0 stands for "any". No two names get the same."""
    with ExitStack() as held:
        picked: dict[str, int] = {}
        for name, port in wanted.items():
            listener = held.enter_context(_bind(port) or _bind_any())
            picked[name] = listener.getsockname()[1]
        return picked


def address(port: int) -> str:
    """The loopback address of `port`."""
    return f"{HOST}:{port}"


def accepts(port: int) -> bool:
    """Whether something listens on `port`."""
    try:
        socket.create_connection((HOST, port), timeout=0.2).close()
    except OSError:
        return False
    return True


def holder(port: int) -> str:
    """Who listens on `port`, as far as this user may know."""
    with contextlib.suppress(psutil.Error, OSError):
        for connection in psutil.net_connections("tcp"):
            listens = connection.status == psutil.CONN_LISTEN and connection.laddr[1:] == (port,)
            if listens and connection.pid is not None:
                return f"{psutil.Process(connection.pid).name()} (pid {connection.pid})"
    return "another program"


def _bind(port: int) -> socket.socket | None:
    if port and accepts(port):  # some systems would let us bind beside a listener on all addresses
        return None
    listener = socket.socket()
    # As servers do; else a port whose last connections still linger would seem taken.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen(1)
    except OSError:
        listener.close()
        return None
    return listener


def _bind_any() -> socket.socket:
    listener = _bind(0)
    if listener is None:
        raise OSError(f"no free port on {HOST}")
    return listener
