"""The life of a process: what a person must correct is its last word, and signals set a flag."""

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from waybill_shared.contract.errors import UserError


@contextmanager
def shutdown_on_signals() -> Iterator[threading.Event]:
    """Yield an event that SIGINT or SIGTERM sets; the second signal ends the process at once."""
    stop = threading.Event()

    def handle(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        stop.set()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run(main: Callable[[], int | None]) -> int:
    """Run `main` and return its exit code.

    If settings or files must be corrected, print a line for each and return 2.
    """
    try:
        return main() or 0
    except UserError as error:
        for problem in error.problems:
            fix = f" ({problem.hint})" if problem.hint else ""
            print(f"cannot run: {problem.message}{fix}", file=sys.stderr)
        return 2
