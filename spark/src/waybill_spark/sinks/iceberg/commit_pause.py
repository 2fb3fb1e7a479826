"""The pause of a sink after its own commit to a table that others write, too.

Without it a slower writer would be too late each time.
"""

import random
import time
from typing import Final

from waybill_shared.process.clock import Clocks

PAUSE_MS_MAX: Final = 2_000


class CommitPause:
    def __init__(self, clock: Clocks) -> None:
        self._clock = clock
        self._committed_at = 0
        self._commit_ms = 0
        """How long the last commit took; 0 where nobody else writes."""

    def start(self, commit_started: int, *, is_shared: bool) -> None:
        """Start the pause after a commit that began at `commit_started`."""
        self._committed_at = self._clock.monotonic_ms()
        self._commit_ms = self._committed_at - commit_started if is_shared else 0

    def wait(self) -> bool:
        """Wait about as long as the last commit took. Return False if nobody else writes."""
        if not self._commit_ms:
            return False
        pause_ms = min(self._commit_ms, PAUSE_MS_MAX) * random.uniform(1, 2)
        time.sleep(max(0, self._committed_at + pause_ms - self._clock.monotonic_ms()) / 1000)
        return True
