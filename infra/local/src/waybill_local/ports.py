"""Picks loopback ports: the wanted one if it is free, else one that the system offers."""

import atexit
import contextlib
import socket
import sys
from collections.abc import Mapping
from contextlib import ExitStack

import psutil

HOST = "127.0.0.1"
_HELD = ExitStack()  # until this process ends
atexit.register(_HELD.close)


def pick(wanted: Mapping[str, int]) -> dict[str, int]:
    """One free port per name; 0 stands for "any". No two names get the same.

    On Linux they stay bound here, not listening, until this process ends. A server binds beside
    that, as SO_REUSEADDR lets it, and nobody else is offered the port before it starts or while it
    starts again.
    """
    with ExitStack() as bound:
        picked: dict[str, int] = {}
        for name, port in wanted.items():
            again = port in picked.values()
            holder = bound.enter_context((None if again else _bind(port)) or _bind_any())
            picked[name] = holder.getsockname()[1]
        if sys.platform == "linux":
            _HELD.push(bound.pop_all())
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
    bound = socket.socket()
    # As servers do; else a port whose last connections still linger would seem taken.
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((HOST, port))
    except OSError:
        bound.close()
        return None
    return bound


def _bind_any() -> socket.socket:
    bound = _bind(0)
    if bound is None:
        raise OSError(f"no free port on {HOST}")
    return bound
