"""Lets the batches of a stage begin, or makes them wait while it is paused."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from waybill_spark.tracking.stopping import StageClosed


class BatchGate:
    """Every method may be called from any thread."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._paused = False
        self._running = 0
        self._closed = False

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Begin a batch, as soon as none must wait. Raise StageClosed if none begins any more.

        A batch of the query may begin while another one, of replays, still runs: it waits
        elsewhere.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._closed or not self._paused)
            if self._closed:
                raise StageClosed
            self._running += 1
        try:
            yield
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    def set_paused(self, *, paused: bool) -> None:
        """Let no batch begin, or let them begin again. A running batch ends."""
        with self._changed:
            self._paused = paused
            self._changed.notify_all()

    @property
    def is_paused(self) -> bool:
        """True if no batch runs, and none begins."""
        with self._changed:
            return self._paused and not self._running

    def close(self) -> None:
        """Wait for the running batches, and let none begin any more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._running)
