"""A folder for a real local stack, with small stand-ins where the services will be."""

import os
import textwrap
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from waybill_local import stack
from waybill_local.services import Service
from waybill_local.stack import Options, Report, StackState

DEADLINE_S = 120.0
POLL_S = 0.02
STANDIN = """
    import http.server, os, signal, subprocess, sys

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            if self.path == "/crash":
                os._exit(3)
            body = b"{}"
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    port = int(os.environ["WAYBILL_NAME_PORT"])
    PREPARE
    http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""


@dataclass(slots=True)
class Place:
    """A folder for a stack, its stand-ins, and what it reported."""

    folder: Path
    services: tuple[Service, ...] = ()
    reports: list[Report] = field(default_factory=list)

    def add_service(self, name: str, *, prepare: str = "pass") -> None:
        """A service that runs `prepare` when it starts, and then serves."""
        code = textwrap.dedent(STANDIN).replace("NAME", name.upper()).replace("PREPARE", prepare)
        (self.folder / f"standin_{name}.py").write_text(code, encoding="utf-8")
        service = Service(name=name, module=f"standin_{name}", stop_timeout_s=5.0)
        self.services = (*self.services, service)

    @property
    def options(self) -> Options:
        """Any free ports the first time, the same ones from then on."""
        port = None if (self.folder / ".waybill" / "state.json").exists() else 0
        return Options(gateway_port=port, kafka_port=port, valkey_port=port, services=self.services)

    def up(self) -> StackState:
        return stack.up(self.folder, self.reports.append, options=self.options, tied=True)


def make_place(folder: Path, patch: pytest.MonkeyPatch) -> Place:
    place = Place(folder=folder)
    patch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
    place.add_service("ingress")
    place.add_service("gateway")
    return place


def state_of(place: Place) -> StackState:
    """The running stack of `place`."""
    state = stack.read_state(place.folder)
    assert state is not None
    return state


def family(state: StackState) -> list[psutil.Process]:
    """The supervisor of a stack and everything below it."""
    supervisor = psutil.Process(state.supervisor_pid)
    return [supervisor, *supervisor.children(recursive=True)]


def eventually(holds: Callable[[], object]) -> None:
    """Wait until something holds, or fail at the deadline."""
    deadline = time.monotonic() + DEADLINE_S
    while not holds():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(POLL_S)
