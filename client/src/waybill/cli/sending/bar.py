"""Shows how much of a source was sent: on a terminal only, and only after a second."""

import sys
import threading
from typing import TYPE_CHECKING, Self

from waybill.cli import render

if TYPE_CHECKING:
    from rich.progress import Progress

DELAY_S = 1.0


class Bar:
    """A line of stderr with bytes, rate and the time that is left."""

    def __init__(self, size: int | None, *, wanted: bool) -> None:
        self._size = size
        self._done = 0
        self._wanted = wanted
        self._lock = threading.Lock()
        self._timer = threading.Timer(DELAY_S, self._begin)
        self._timer.daemon = True
        self._shown: Progress | None = None
        self._ended = False

    def __enter__(self) -> Self:
        if self._wanted and sys.stderr.isatty():
            self._timer.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._timer.cancel()
        with self._lock:
            self._ended = True
            if self._shown is not None:
                self._shown.stop()

    def show(self, done: int) -> None:
        """Show how many bytes of the source were sent."""
        with self._lock:
            self._done = done
            if self._shown is not None:
                self._shown.update(self._shown.task_ids[0], completed=done)

    def _begin(self) -> None:
        with self._lock:
            if self._ended or not render.lively():
                return
            self._shown = _make_progress()
            self._shown.start()
            self._shown.add_task("sending", total=self._size, completed=self._done)


def _make_progress() -> "Progress":
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=render.console(sys.stderr),
        transient=True,
    )
