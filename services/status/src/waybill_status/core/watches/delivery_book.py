"""The newest state of each delivery. A thread feeds it from `waybill.deliveries`."""

from collections.abc import Iterator
from typing import Final

from waybill_shared.contract.deliveries import WebhookDelivery
from waybill_shared.contract.token_life import WATCH_LIFE_MS

ENDED_MAX: Final = 200_000
"""So many that are over are remembered, about."""


class DeliveryBook:
    """All that are known here. Fed by a thread, and read by others."""

    def __init__(self) -> None:
        self._due: dict[str, WebhookDelivery] = {}
        self._ended: dict[str, WebhookDelivery] = {}

    def accept(self, delivery: WebhookDelivery) -> None:
        """Accept a delivery, unless a newer state of it is known: messages may arrive again, or
        late.
        """
        before = self.get(delivery.watch)
        if before is not None and delivery.age < before.age:
            return
        self._ended.pop(delivery.watch, None)
        if delivery.due:
            self._due[delivery.watch] = delivery
            return
        self._ended[delivery.watch] = delivery
        self._due.pop(delivery.watch, None)
        while self._is_old(next(iter(self._ended.values())), delivery.at or 0):
            del self._ended[next(iter(self._ended))]

    def get(self, watch: str) -> WebhookDelivery | None:
        return self._due.get(watch) or self._ended.get(watch)

    def all_due(self) -> Iterator[WebhookDelivery]:
        return iter([*self._due.values()])

    def _is_old(self, oldest: WebhookDelivery, now_ms: int) -> bool:
        return len(self._ended) > ENDED_MAX or (oldest.at or 0) < now_ms - WATCH_LIFE_MS
