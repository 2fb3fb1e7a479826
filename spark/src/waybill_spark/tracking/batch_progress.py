"""When the batches of a stage ran, and when the running one last made progress.

The threads of a batch write it, and another one reports it to the runner, which decides what it
means: `waybill_stage_runner.core.pipelines.degraded`.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from threading import Lock
from typing import Final

from waybill_shared.contract.driver_news import StageActivity

REMEMBERED: Final = 20  # batches: enough for a middle that one slow batch does not move


class BatchProgress:
    """Every method may be called from any thread."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._lock = Lock()
        self._began_at: float | None = None
        self._moved_at = now_s()
        self._ended_at: float | None = None
        self._lengths: deque[float] = deque(maxlen=REMEMBERED)
        self._pauses: deque[float] = deque(maxlen=REMEMBERED)
        self._batches = 0
        self._rows = 0

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Note that a batch runs. Only one that ends well says what is usual."""
        with self._lock:
            began_at = self._began_at = self._moved_at = self._now_s()
        try:
            yield
        except BaseException:
            with self._lock:
                self._began_at = None
            raise
        with self._lock:
            now = self._now_s()
            self._began_at = None
            self._lengths.append(now - began_at)
            if self._ended_at is not None:
                self._pauses.append(now - self._ended_at)
            self._ended_at = now

    def note(self, rows: int = 0) -> None:
        """Note that the batch has made progress, and how many rows a sink has got."""
        with self._lock:
            self._moved_at = self._now_s()
            self._rows += rows

    def count(self) -> None:
        """Note that a batch has ended well that was not empty."""
        with self._lock:
            self._batches += 1

    def report(self, stage: str) -> StageActivity:
        """Return what is known, without what is known elsewhere: its sinks and its inputs."""
        with self._lock:
            now, began_at = self._now_s(), self._began_at
            return StageActivity(
                stage=stage,
                batch_ms=None if began_at is None else _ms(now - began_at),
                quiet_ms=_ms(now - self._moved_at),
                usual_ms=_ms(median(self._lengths)) if self._lengths else 0,
                usual_pause_ms=_ms(median(self._pauses)) if self._pauses else 0,
                batches=self._batches,
                rows=self._rows,
            )


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
