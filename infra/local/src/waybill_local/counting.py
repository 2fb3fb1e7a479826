"""One line that counts: redrawn on a terminal, and in a log two lines, of its begin and its end.

Imports the standard library alone: it is used before anything is installed.
"""

import sys
import time
from typing import Final

NAME_WIDTH: Final = 9
BAR_WIDTH: Final = 24
CLEAR: Final = "\r\x1b[K"


class CountingLine:
    """The line of one step, such as `jars      [######..................] 12 of 52, 30 MB`."""

    def __init__(self, name: str, begin: str) -> None:
        self._head = f"{name:<{NAME_WIDTH}}"
        self._began = time.monotonic()
        self._lively = sys.stdout.isatty()
        self._write(f"{self._head} {begin}")

    def show(self, text: str, share: float | None = None) -> None:
        """Redraw the line; `share` is how much is done, from 0 to 1, where that is known."""
        if self._lively:
            bar = "" if share is None else f"[{'#' * int(share * BAR_WIDTH):.<{BAR_WIDTH}}] "
            self._write(f"{self._head} {bar}{text}  {self._seconds:.0f} s")

    def end(self, text: str) -> None:
        """Leave the line as it is at the end."""
        self._write(f"{self._head} {text}  {self._seconds:.1f} s", end="\n")

    def leave(self) -> None:
        """Go to the next line: what failed says so below."""
        if self._lively:
            sys.stdout.write("\n")

    @property
    def _seconds(self) -> float:
        return time.monotonic() - self._began

    def _write(self, text: str, end: str = "") -> None:
        sys.stdout.write(f"{CLEAR}{text}{end}" if self._lively else f"{text}\n")
        sys.stdout.flush()
