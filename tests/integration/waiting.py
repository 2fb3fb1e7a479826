"""Waits for something to become true, with a deadline."""

import time
from collections.abc import Callable

DEADLINE_S = 120.0  # only what hangs takes so long
POLL_S = 0.02
POLL_S_MAX = 0.1
SLOWER = 1.2


def eventually(
    true: Callable[[], object],
    *,
    within_s: float = DEADLINE_S,
    saw: Callable[[], object] = lambda: "",
) -> None:
    """Ask more and more rarely: most questions cost as much as what is waited for.

    `saw`: what the failure says beside the deadline.
    """
    deadline, pause_s = time.monotonic() + within_s, POLL_S
    while not true():
        assert time.monotonic() < deadline, f"not true within {within_s} s {saw()}"
        time.sleep(pause_s)
        pause_s = min(pause_s * SLOWER, POLL_S_MAX)
