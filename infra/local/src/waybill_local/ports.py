"""Picks loopback ports: the wanted one if it is free, else one that the system offers."""

import atexit
import contextlib
import socket
import sys
from collections.abc import Mapping
from contextlib import ExitStack

import psutil

HOST = "127.0.0.1"
_KEPT = ExitStack()  # closed when this process ends
atexit.register(_KEPT.close)
_CLAIMED: dict[int, socket.socket] = {}


def pick(wanted: Mapping[str, int]) -> dict[str, int]:
    """Return one free port for each name; 0 means "any". No two names get the same port.

    On Linux this process keeps them bound until it ends, without listening. A server can bind them
    too, as SO_REUSEADDR allows. The system offers them to nobody else before that server starts, or
    while it restarts. A second stack that starts at the same time could bind them as well: it does
    not, because this process has also claimed them.
    """
    with ExitStack() as bound:
        picked: dict[str, int] = {}
        for name, port in wanted.items():
            again = port in picked.values()
            holder = bound.enter_context((None if again else _bind(port)) or _bind_any())
            picked[name] = holder.getsockname()[1]
        if sys.platform == "linux":
            _KEPT.push(bound.pop_all())
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
        _claim(bound.getsockname()[1])
    except OSError:
        bound.close()
        return None
    return bound


def _claim(port: int) -> None:
    """Claim `port` until this process ends. Raises OSError if another process has claimed it.

    The claim is a name that the kernel gives to one process of the machine, and frees with it.
    """
    if sys.platform != "linux" or port in _CLAIMED:
        return
    name = socket.socket(socket.AF_UNIX)
    try:
        name.bind(f"\0waybill-port-{port}")
    except OSError:
        name.close()
        raise
    _CLAIMED[port] = _KEPT.enter_context(name)


def _bind_any() -> socket.socket:
    bound = _bind(0)
    if bound is None:
        raise OSError(f"no free port on {HOST}")
    return bound
