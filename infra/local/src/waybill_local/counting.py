"""The progress of one step as one line. A terminal redraws it; a log gets its start and its end.

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
        """Draw the line again. `share`: how much is done, from 0 to 1; None if not known."""
        if self._lively:
            bar = "" if share is None else f"[{'#' * int(share * BAR_WIDTH):.<{BAR_WIDTH}}] "
            self._write(f"{self._head} {bar}{text}  {self._seconds:.0f} s")

    def end(self, text: str) -> None:
        """Write the line a last time, with `text`, and go to the next line."""
        self._write(f"{self._head} {text}  {self._seconds:.1f} s", end="\n")

    def leave(self) -> None:
        """End the line. The error that ended this step is printed below it."""
        if self._lively:
            sys.stdout.write("\n")

    @property
    def _seconds(self) -> float:
        return time.monotonic() - self._began

    def _write(self, text: str, end: str = "") -> None:
        sys.stdout.write(f"{CLEAR}{text}{end}" if self._lively else f"{text}\n")
        sys.stdout.flush()
