"""The one error that the local stack shows to a person: what failed, why, and what to do.

It never wraps a bug: an unexpected exception is raised as it is.
"""

from pathlib import Path

LOG_LINES_SHOWN = 5


class StackError(Exception):
    """A failure of the local stack: what failed, why, and how a person can fix it."""

    def __init__(self, what: str, *, why: str, fix: str) -> None:
        super().__init__(f"{what}\n  why: {why}\n  fix: {fix}")
        self.what = what
        self.why = why
        self.fix = fix


def log_tail(path: Path) -> str:
    """Return the last lines of a log and the path of the whole, for the `why` of an error."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return f"it wrote nothing to {path}"
    tail = [line for line in text.splitlines() if line.strip()][-LOG_LINES_SHOWN:]
    if not tail:
        return f"it wrote nothing to {path}"
    return "\n       ".join([f"the end of {path}:", *tail])
