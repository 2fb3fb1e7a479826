"""Liveness and readiness of one process: checks by name, and a beat that its loop must keep."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

Check = Callable[[], str | None]
"""None when the dependency answers, else what is wrong with it."""

BEAT_AGE_S_MAX = 30.0  # longer than any single step of a loop that is well


@dataclass
class Health:
    checks: dict[str, Check] = field(default_factory=dict)
    _beat_at: float = field(default_factory=time.monotonic)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def beat(self) -> None:
        """Note that the loop runs: the loop calls this, and the process counts as alive as long as
        it does.
        """
        with self._lock:
            self._beat_at = time.monotonic()

    def alive(self) -> bool:
        with self._lock:
            return time.monotonic() - self._beat_at < BEAT_AGE_S_MAX

    def readiness(self) -> dict[str, str]:
        """Return each check's name with `ok` or with what is wrong."""
        return {name: check() or "ok" for name, check in self.checks.items()}


def ready(readiness: dict[str, str]) -> bool:
    return all(answer == "ok" for answer in readiness.values())
