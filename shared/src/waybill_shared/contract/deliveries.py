"""Deliveries: how far the event of a watch is on its way to a webhook. They are the messages of
`waybill.deliveries`, where the newest of a watch counts."""

from dataclasses import dataclass, replace
from typing import Final

from waybill_shared.contract.watches import TokenWatch
from waybill_shared.contract.webhooks import Webhook, without_query
from waybill_shared.contract.words import DeliveryState

EVENT_BYTES_MAX: Final = 16_384  # of an event that is stored in its delivery


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookDelivery:
    """Delivery of one event to a webhook.

    `event`: as it is sent; empty after the end, and if it is long: then it is found in
    `waybill.status`.

    `redelivery`: its number, 0 for the first delivery. `since`: when the attempts started;
    `next_at`: when the next one is due; `at`: the time of the last attempt or of the end. All
    three by the clock of the process that made the last attempt.
    """

    watch: str
    event_id: str
    event: str
    webhook: Webhook
    redelivery: int
    state: DeliveryState
    attempts: int
    since: int
    next_at: int
    at: int | None = None
    error: str | None = None

    @property
    def due(self) -> bool:
        return self.state == DeliveryState.DUE

    @property
    def age(self) -> tuple[int, bool, int]:
        """Grows with each step."""
        return self.redelivery, not self.due, self.attempts

    def ended(
        self, state: DeliveryState, now_ms: int, error: str | None = None
    ) -> "WebhookDelivery":
        """Return this delivery as ended, without anything secret in it."""
        webhook = Webhook(url=without_query(self.webhook.url), secret="")
        return replace(self, state=state, event="", webhook=webhook, at=now_ms, error=error)


def new_delivery(watch: TokenWatch, webhook: Webhook, event: str, now_ms: int) -> WebhookDelivery:
    """Return the first delivery of the event that was written for `watch`."""
    assert watch.event_id is not None
    return WebhookDelivery(
        watch=watch.id,
        event_id=watch.event_id,
        event=event if len(event) <= EVENT_BYTES_MAX else "",
        webhook=webhook,
        redelivery=watch.redeliveries,
        state=DeliveryState.DUE,
        attempts=0,
        since=now_ms,
        next_at=now_ms,
    )
