"""Loads of one batch as threads would interleave them: one may stand still while others are done.

A crash ends all of them where they are.
"""

from collections.abc import Callable, Mapping

Load = Callable[[], None]


class SimLoads:
    """Fulfils `waybill_spark.tracking.loads.Loads`; calls `interleave` wherever a load may wait."""

    def __init__(self, pick: Callable[[int], int]) -> None:
        self._pick = pick
        self._waiting: list[Load] = []
        self._failures: list[Exception] = []

    def run(self, loads: Mapping[str, Load]) -> None:
        outer = (self._waiting, self._failures)
        self._waiting, self._failures = [*loads.values()], []
        try:
            while self._waiting:
                self._next()
            if self._failures:
                raise self._failures[0]
        finally:
            self._waiting, self._failures = outer

    def interleave(self) -> None:
        while self._waiting and self._pick(2):
            self._next()

    def _next(self) -> None:
        load = self._waiting.pop(self._pick(len(self._waiting)))
        try:
            load()
        except Exception as failure:  # noqa: BLE001 - as a thread ends with it
            self._failures.append(failure)
