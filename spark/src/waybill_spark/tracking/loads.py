"""Loads a batch into several sinks at the same time, so that it takes as long as the slowest."""

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Final, Protocol

from waybill_shared.contract.errors import Retryable

logger = logging.getLogger(__name__)

AT_ONCE: Final = 20


class Loads(Protocol):
    def run(self, loads: Mapping[str, Callable[[], None]]) -> None:
        """Carry out one for each sink; when all have ended, raise what failed, if any did: first
        what no other try would mend."""


class ParallelLoads:
    """All stages of a driver share its threads."""

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self._pool = ThreadPoolExecutor(at_once, thread_name_prefix="load")

    def run(self, loads: Mapping[str, Callable[[], None]]) -> None:
        if len(loads) == 1:
            for load in loads.values():
                load()
            return
        running = {self._pool.submit(load): sink for sink, load in loads.items()}
        failed = [
            (failure, running[ended])
            for ended in as_completed(running)
            if (failure := ended.exception()) is not None
        ]
        failed.sort(key=lambda each: isinstance(each[0], Retryable))
        for failure, sink in failed[1:]:
            extra = {"sink": sink, "reason": str(failure)}
            logger.warning("another sink of the batch failed too", extra=extra)
        if failed:
            raise failed[0][0]

    def close(self) -> None:
        self._pool.shutdown()
