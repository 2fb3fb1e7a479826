"""Limits how long one reading of a file may take, and how slow its server may be."""

import math
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import Final

from waybill_ingress.app.connector_ports import FetchFailed

LOOK_S: Final = 1.0  # between two checks of the speed
SLOW_S: Final = 60.0  # of waiting for its server; before that a file may be slower
SLOWEST: Final = 1_000  # bytes per second


class FetchPatience:
    """The limits of one download. `stop` ends it at once, and is set at its end.

    `bytes_read` returns how many bytes are read so far.
    """

    def __init__(self, stop: Event, time_s: float, bytes_read: Callable[[], int]) -> None:
        self._stop = stop
        self._time_s = time_s
        self._bytes_read = bytes_read
        self._late: str | None = None
        self._waited_s, self._waits_since = 0.0, math.inf
        self._socket: socket.socket | None = None
        Thread(target=self._end_in_time, name="deadline of a file", daemon=True).start()

    def watch(self, connected: socket.socket) -> socket.socket:
        """Note the socket, which is closed when the download ends."""
        self._socket = connected
        return connected

    @contextmanager
    def count_wait(self) -> Iterator[None]:
        """Count this time as waiting for the server, and not for the reader of its data."""
        self._waits_since = time.monotonic()
        try:
            yield
        finally:
            self._waited_s += time.monotonic() - self._waits_since
            self._waits_since = math.inf

    def check(self) -> None:
        if self._late is not None:
            raise FetchFailed(self._late)
        if self._stop.is_set():
            raise FetchFailed("it was stopped")

    def pause(self, seconds: float) -> None:
        self._stop.wait(seconds)
        self.check()

    def end(self) -> None:
        self._stop.set()

    def _end_in_time(self) -> None:
        """End the reading in time. A server may send a byte now and then, or headers without end:
        only this ends such calls.
        """
        deadline = time.monotonic() + self._time_s
        while self._late is None and not self._stop.wait(LOOK_S):
            now = time.monotonic()
            waited_s = self._waited_s + max(0.0, now - self._waits_since)
            if now > deadline:
                self._late = f"it takes longer than {self._time_s:.0f} s"
            elif waited_s > SLOW_S and self._bytes_read() < waited_s * SLOWEST:
                self._late = f"it comes slower than {SLOWEST} bytes a second"
        self._stop.set()
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
