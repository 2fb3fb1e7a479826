"""Checks that our own topics are still those with which this process started.

A topic that is deleted and created again starts its offsets again. What a process knows of the old
one would hide what is written into the new one.
"""

import time
from collections.abc import Callable, Iterable
from typing import Final

from waybill_shared.contract.errors import ContractError, Retryable
from waybill_shared.kafka.admin import KafkaAdmin

CHECK_INTERVAL_S: Final = 5.0


class TopicRecreated(ContractError):
    """Ends the process."""


class OwnTopics:
    def __init__(
        self, admin: KafkaAdmin, names: Iterable[str], now: Callable[[], float] = time.monotonic
    ) -> None:
        self.admin = admin
        self._names = tuple(names)
        self._now = now
        self._ids: dict[str, str] = {}
        self._check_at = now() + CHECK_INTERVAL_S

    def id_of(self, name: str) -> str:
        """Return the id that the topic had when it was asked for first.

        Raise Retryable if Kafka does not report it.
        """
        if name not in self._ids:
            found = self._ask()
            if name not in found:
                raise Retryable(f"topic {name} does not exist; create it with the admin step")
            self._ids = {**found, **self._ids}
        return self._ids[name]

    def require(self, name: str) -> None:
        """Raise Retryable unless the topic still has its id.

        If it has another one, the next `check` reports that.
        """
        known, found = self.id_of(name), self._ask().get(name)
        if found != known:
            self._check_at = self._now()
            raise Retryable(f"topic {name}: it had id {known}, now it has {found or 'none'}")

    def check(self) -> None:
        """Ask again at intervals. Raise TopicRecreated when a topic has another id."""
        if self._now() < self._check_at:
            return
        self._check_at = self._now() + CHECK_INTERVAL_S
        try:
            found = self._ask()
        except Retryable:
            return
        for name, topic_id in found.items():
            known = self._ids.setdefault(name, topic_id)
            if topic_id != known:
                raise TopicRecreated(
                    f"topic {name} was created again: it had id {known} and has {topic_id}; this"
                    " process ends, the next one reads it from its beginning"
                )

    def _ask(self) -> dict[str, str]:
        found = self.admin.identify(self._names)
        return {name: identity.topic_id for name, identity in found.items()}
