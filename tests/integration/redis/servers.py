"""Valkey servers that can be killed, put back and stopped."""

import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import psutil
import redis

from integration.waiting import eventually
from waybill_local import valkey
from waybill_local.folders import make_private
from waybill_local.ports import HOST, pick
from waybill_local.processes import Child, kill_group, start


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

    def __exit__(self, *exc: object) -> None:
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
