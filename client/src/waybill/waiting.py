"""Decides how long a wait goes on and how long it pauses between two tries.

Each try starts with `long_poll_s`: for so long the server may wait with its answer. After an answer
that is not final, `pace` is the pause until the next try. After a failure it is `endure`: what
Retry-After asks for, else a time that doubles with each failure. Any answer resets that time. When
no time is left, `endure` raises the failure.

Owns no connection and never sleeps. Time comes from a Clock, so that tests need not wait.
"""

from typing import Protocol

from waybill.errors import NotReady, Unreachable

TIMEOUT_S = 60.0  # twice what ingress gives Kafka, so that its own answer is received
START_TIMEOUT_S = 10.0  # of tracking: a broker that is there says its cluster's id at once
NAME_GRACE_S = 2.0  # a pipeline applied a moment ago may not be known yet
WAIT_TIMEOUT_S = 60.0  # two stages with an Iceberg sink, from cold
LONG_POLL_S_MAX = 30.0  # how long one request may wait; proxies cut idle connections at 60 s
POLL_INTERVAL_S_MIN = 0.25  # between two looks when the server answers at once
BACKOFF_S_FIRST = 0.1
BACKOFF_S_MAX = 2.0  # a restarted stack is noticed within this
ANSWER_WAIT_S = 1.0  # for a change: what needs no new driver is done by then
MOMENT_S_MAX = 30.0  # for what Waybill says is only a matter of moments
REPEAT_S = 120.0  # for a write that has a key: longer than another ingress waits to take it over
RETRY_AFTER_S_MAX = 30.0  # a larger Retry-After is looked at sooner


class Time(Protocol):
    """A clock of seconds that never go back."""

    def monotonic(self) -> float: ...


class Patience:
    """The time left for one wait, and how long its pauses are."""

    def __init__(self, clock: Time, timeout_s: float) -> None:
        self._clock = clock
        self._ends_at = clock.monotonic() + timeout_s
        self._backoff_s = BACKOFF_S_FIRST
        self._asked_at = clock.monotonic()

    @property
    def left_s(self) -> float:
        return max(0.0, self._ends_at - self._clock.monotonic())

    @property
    def over(self) -> bool:
        return self.left_s <= 0.0

    def long_poll_s(self) -> float:
        """Return how long the server may wait with its answer; start the interval that `pace`
        keeps."""
        self._asked_at = self._clock.monotonic()
        return min(LONG_POLL_S_MAX, self.left_s)

    def pace(self, retry_after_s: float | None = None) -> float:
        """Return the pause after an answer that was not final."""
        self.reset()
        spent_s = self._clock.monotonic() - self._asked_at
        wanted_s = retry_after_s if retry_after_s is not None else POLL_INTERVAL_S_MIN - spent_s
        return self._limit(wanted_s)

    def reset(self) -> None:
        """Reset the back-off: Waybill has answered, so the next failure is a first one again."""
        self._backoff_s = BACKOFF_S_FIRST

    def endure(self, error: Unreachable | NotReady) -> float:
        """Return the pause before another try; raise `error` when no time is left for one."""
        if self.over:
            raise error
        asked_s = error.retry_after_s if isinstance(error, NotReady) else None
        wanted_s = self._backoff_s if asked_s is None else asked_s
        self._backoff_s = min(BACKOFF_S_MAX, self._backoff_s * 2)
        return self._limit(wanted_s)

    def _limit(self, seconds: float) -> float:
        return max(0.0, min(seconds, RETRY_AFTER_S_MAX, self.left_s))
