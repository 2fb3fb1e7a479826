"""Loads a batch into several sinks at the same time, so that it takes as long as the slowest."""

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Final, Protocol

logger = logging.getLogger(__name__)

AT_ONCE: Final = 20


class Loads(Protocol):
    def run(self, loads: Mapping[str, Callable[[], None]]) -> None:
        """Carry out one for each sink; when all have ended, raise what failed first, if any did."""


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
        first: BaseException | None = None
        for ended in as_completed(running):
            failure = ended.exception()
            if first is not None and failure is not None:
                told = {"sink": running[ended], "reason": str(failure)}
                logger.warning("another sink of the batch failed too", extra=told)
            first = first or failure
        if first is not None:
            raise first

    def close(self) -> None:
        self._pool.shutdown()
