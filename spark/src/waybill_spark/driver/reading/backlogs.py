"""Remembers for how long records of a stage wait without a commit, and whether they become more."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple


class Backlog(NamedTuple):
    """Records that wait for a stage."""

    waiting_ms: int
    """Since when they wait, and nothing was committed."""
    grows: bool


@dataclass(frozen=True, slots=True)
class _Wait:
    since_s: float
    first: int
    newest: int


class Backlogs:
    """`note` is called with each look at the ends of topics; `now` from any thread."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._waits: dict[str, _Wait] = {}

    def note(self, lags: Mapping[str, int], stages: Iterable[str]) -> None:
        """Note the records that wait for stages in which nothing has moved since the last look. All
        other `stages` begin anew.
        """
        now_s = self._now_s()
        for stage in stages:
            lag = lags.get(stage, 0)
            wait = self._waits.get(stage)
            if not lag:
                self._waits.pop(stage, None)
            elif wait is None:
                self._waits[stage] = _Wait(now_s, lag, lag)
            else:
                self._waits[stage] = _Wait(wait.since_s, wait.first, lag)

    def now(self) -> dict[str, Backlog]:
        now_s = self._now_s()
        return {
            stage: Backlog(round((now_s - wait.since_s) * 1000), wait.newest > wait.first)
            for stage, wait in list(self._waits.items())
        }
