"""Waits for something to become true, with a deadline."""

import time
from collections.abc import Callable
from typing import Final

POLL_S: Final = 0.02


class Late(Exception):
    """Something did not come in the time that it had."""


def until(true: Callable[[], object], what: str, *, within_s: float) -> None:
    deadline = time.monotonic() + within_s
    while not true():
        if time.monotonic() > deadline:
            raise Late(f"{what}: not within {within_s} s")
        time.sleep(POLL_S)
