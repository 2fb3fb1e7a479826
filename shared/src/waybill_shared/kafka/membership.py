"""Checks that the group of a consumer still gives it partitions."""

import time
from collections.abc import Callable

from waybill_shared.kafka.admin import KafkaAdmin

REJOIN_MAX_S = 60.0  # longer than any member needs to take its partitions over


class Membership:
    """Membership of a consumer in its group.

    It ends a process if its consumer does not return into the group.

    After its coordinator has hung, librdkafka may poll for ever without an assignment. Only a new
    consumer helps, and a new process is the plainest way to one.
    """

    def __init__(self, admin: KafkaAdmin, now: Callable[[], float] = time.monotonic) -> None:
        self._admin = admin
        self._now = now
        self._outside_since: float | None = now()

    def joined(self) -> None:
        """Note that the group gave this member its part, which may be empty."""
        self._outside_since = None

    def left(self) -> None:
        self._outside_since = self._now()

    def check(self) -> None:
        """Raise RuntimeError if Kafka answers and the group still gives no part."""
        since = self._outside_since
        if since is None or self._now() - since < REJOIN_MAX_S:
            return
        if self._admin.reachable() is not None:
            self.left()  # counts from when Kafka is back
            return
        raise RuntimeError(f"the consumer's group gave it no part for {REJOIN_MAX_S:.0f} s")
