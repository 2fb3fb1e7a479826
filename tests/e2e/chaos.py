"""Faults in the order that a seed draws, one after the other, in a thread of its own."""

import random
import threading
import time
from collections.abc import Container, Mapping

import redis

from e2e.faults import await_ready, kill, paused, process_of
from e2e.load import Ledger
from e2e.waiting import drivers_of, eventually

PAUSE_S = (0.5, 2.5)  # between two faults
HELD_S = (2.0, 7.0)  # longer and shorter than an answer that is not final may be old
PROGRESS_TIMEOUT_S = 240.0
WHILE_MOVING = 0.6  # of the light faults; the others may meet a driver that still starts
FAULTS = {
    "kill the driver": 1,
    "kill stage_runner": 1,
    "hold the driver": 1,
    "kill token_tracker": 1,
    "hold token_tracker": 1,
    "flush redis": 2,
    "kill ingress": 1,
    "kill status": 1,
    "kill gateway": 1,
}
HEAVY = {"kill the driver", "kill stage_runner"}
"""Nothing moves for many seconds after these: something must have moved between two of them."""


class Chaos:
    """`complete` are the tokens of the ledger that are known to be so; `faults`: how often each
    comes."""

    def __init__(
        self,
        ledger: Ledger,
        uid: str,
        dice: random.Random,
        complete: Container[str],
        faults: Mapping[str, int],
    ) -> None:
        self.failures: list[BaseException] = []
        self._ledger = ledger
        self._stack = ledger.stack
        self._uid = uid
        self._dice = dice
        self._complete = complete
        self._faults = faults
        self._given_before = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    @property
    def running(self) -> bool:
        return self._thread.is_alive()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Returns when all that was killed or held is back."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()
        await_ready(self._stack)

    def _run(self) -> None:
        order = [name for name, times in self._faults.items() for _ in range(times)]
        self._dice.shuffle(order)
        began = time.monotonic()
        try:
            for fault in order:
                if self._stop.wait(self._dice.uniform(*PAUSE_S)):
                    return
                if fault in HEAVY or self._dice.random() < WHILE_MOVING:
                    self._await_progress()
                print(f"{time.monotonic() - began:6.1f} s  {fault}")
                self._bring(fault)
                if fault in HEAVY:
                    self._given_before = len(self._ledger.given)
            self._await_progress()
        except BaseException as error:  # noqa: BLE001 - told by the test
            self.failures.append(error)

    def _bring(self, fault: str) -> None:
        verb, _, name = fault.partition(" ")
        if verb == "flush":
            with redis.Redis.from_url(self._stack.redis) as client:
                client.flushall()
            return
        await_ready(self._stack)
        driver = name == "the driver"
        processes = (
            drivers_of(self._stack, self._uid) if driver else [process_of(self._stack, name)]
        )
        if verb == "kill":
            kill(processes)
        else:
            with paused(processes):
                self._stop.wait(self._dice.uniform(*HELD_S))

    def _await_progress(self) -> None:
        """Until a token has become complete that was given after the last heavy fault."""
        eventually(self._moved, within_s=PROGRESS_TIMEOUT_S)

    def _moved(self) -> bool:
        later = list(self._ledger.given)[self._given_before :]
        return self._stop.is_set() or any(token in self._complete for token in later)
