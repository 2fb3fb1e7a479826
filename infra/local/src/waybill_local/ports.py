"""Picks loopback ports: the wanted one if it is free, else one that the system offers."""

import atexit
import contextlib
import socket
import sys
from collections.abc import Mapping
from contextlib import ExitStack

import psutil

HOST = "127.0.0.1"
_HELD = ExitStack()  # closed when this process ends
atexit.register(_HELD.close)


def pick(wanted: Mapping[str, int]) -> dict[str, int]:
    """Return one free port for each name; 0 means "any". No two names get the same port.

    On Linux this process keeps them bound until it ends, without listening. A server can bind them
    too, as SO_REUSEADDR allows. The system offers them to nobody else before that server starts, or
    while it restarts.
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
    """Return the loopback address of `port`."""
    return f"{HOST}:{port}"


def accepts(port: int) -> bool:
    """Return True if something listens on `port`."""
    try:
        socket.create_connection((HOST, port), timeout=0.2).close()
    except OSError:
        return False
    return True


def holder(port: int) -> str:
    """Return the name and pid of the program that listens on `port`, if this user may see them."""
    with contextlib.suppress(psutil.Error, OSError):
        for connection in psutil.net_connections("tcp"):
            listens = connection.status == psutil.CONN_LISTEN and connection.laddr[1:] == (port,)
            if listens and connection.pid is not None:
                return f"{psutil.Process(connection.pid).name()} (pid {connection.pid})"
    return "another program"


def _bind(port: int) -> socket.socket | None:
    if port and accepts(port):  # some systems let us bind next to a listener on all addresses
        return None
    bound = socket.socket()
    # As servers do. Else a port seems to be in use while its last connections are still closing.
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
