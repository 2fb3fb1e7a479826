"""Runs the tracker: applies new messages and does what is due. A second thread measures lag."""

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from waybill_shared.contract.errors import Retryable
from waybill_shared.process.health import Health
from waybill_token_tracker.adapters.kafka import FactStream
from waybill_token_tracker.adapters.redis import RedisStore
from waybill_token_tracker.app.lag import LagWatch
from waybill_token_tracker.app.measuring import count_retry, show_no_lag
from waybill_token_tracker.app.tracker import Tracker

logger = logging.getLogger(__name__)

POLL_S: Final = 0.05
RETRY_S: Final = 1.0
CONFIRM_INTERVAL_S: Final = 1.0  # well below the age at which a slot no longer counts
SAVE_INTERVAL_S: Final = 2.0  # each looks at every pipeline, and writes few of them
LOOK_INTERVAL_S: Final = 1.0


class Loop:
    """The main loop. One round applies new messages and writes what changed; from time to time it
    confirms every slot, and saves what is due."""

    def __init__(
        self,
        stream: FactStream,
        tracker: Tracker,
        store: RedisStore,
        lag: LagWatch,
        health: Health,
    ) -> None:
        self._stream = stream
        self._tracker = tracker
        self._store = store
        self._lag = lag
        self._health = health
        self._confirm_at = self._save_at = 0.0

    def run(self, stop: threading.Event) -> None:
        """Repeat `turn` until `stop` is set. A Retryable error is logged, and the next round tries
        again."""
        with watch_lag(self._lag):
            while not stop.is_set():
                self._health.beat()
                try:
                    self.turn()
                except Retryable as error:
                    count_retry()
                    logger.warning("will be tried again", extra={"reason": str(error)})
                    stop.wait(RETRY_S)
            self._save_last()

    def turn(self) -> None:
        self._stream.feed(POLL_S)
        now = time.monotonic()
        self._lag.show(self._tracker.slots())
        if now >= self._confirm_at or self._store.forgot(self._tracker.partitions()):
            self._tracker.confirm()
            self._confirm_at = now + CONFIRM_INTERVAL_S
        self._tracker.flush()
        if now >= self._save_at:
            self._tracker.save()
            self._save_at = now + SAVE_INTERVAL_S

    def _save_last(self) -> None:
        """Save everything at the end, so that the next owner starts sooner. If it works already,
        Kafka refuses this save."""
        try:
            self._tracker.save(whole=True)
        except Retryable as error:
            logger.warning("not saved at the end", extra={"reason": str(error)})


@contextmanager
def watch_lag(lag: LagWatch) -> Iterator[None]:
    """Measure lag in a thread of its own. Whatever is slow or fails there, facts are applied
    meanwhile."""
    stop = threading.Event()
    thread = threading.Thread(target=_look, args=(lag, stop), name="lag", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _look(lag: LagWatch, stop: threading.Event) -> None:
    while not stop.wait(LOOK_INTERVAL_S):
        try:
            lag.look()
        except Retryable as error:
            logger.warning("lag cannot be seen", extra={"reason": str(error)})
            show_no_lag()
        except Exception:  # the thread's boundary: facts are applied all the same
            logger.exception("lag cannot be seen")
            show_no_lag()
