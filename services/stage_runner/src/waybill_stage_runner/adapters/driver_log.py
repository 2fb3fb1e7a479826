"""Reads the end of a driver's log, which may be very long."""

from pathlib import Path
from typing import Final

BYTES_MAX: Final = 131_072  # of the end of the file: an answer is one message
LINE_MAX: Final = 2_000  # characters


def newest_lines(file: Path, lines: int) -> list[str]:
    """Return the newest lines of the log, none if the file does not exist yet."""
    try:
        with file.open("rb") as log:
            size = log.seek(0, 2)
            log.seek(max(0, size - BYTES_MAX))
            found = log.read().decode(errors="replace").splitlines()
    except FileNotFoundError:
        return []
    whole = found if size <= BYTES_MAX else found[1:]
    return [line if len(line) <= LINE_MAX else f"{line[:LINE_MAX]}…" for line in whole[-lines:]]
