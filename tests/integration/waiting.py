"""Waits for something to become true, with a deadline."""

import time
from collections.abc import Callable

DEADLINE_S = 60.0
POLL_S = 0.02


def eventually(true: Callable[[], object], *, within_s: float = DEADLINE_S) -> None:
    deadline = time.monotonic() + within_s
    while not true():
        assert time.monotonic() < deadline, f"not true within {within_s} s"
        time.sleep(POLL_S)
