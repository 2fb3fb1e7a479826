"""Watches as people see them."""

from dataclasses import dataclass, field, replace
from typing import Final

from waybill_shared.contract.deliveries import WebhookDelivery
from waybill_shared.contract.moments import Moment
from waybill_shared.contract.token_views import ShownView, view_to_show
from waybill_shared.contract.watches import TokenWatch
from waybill_shared.contract.webhooks import Webhook, without_query
from waybill_shared.contract.words import DeliveryState, WatchEnd, WatchState

STATES: Final = {
    DeliveryState.DELIVERED: WatchState.DELIVERED,
    DeliveryState.FAILED: WatchState.FAILED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookDetail:
    url: str = field(metadata={"description": "without its query"})
    secret: str | None = field(
        default=None, metadata={"description": "if it was made here; in the first answer only"}
    )
    state: DeliveryState | None = field(
        default=None, metadata={"description": "null before the watch is reported"}
    )
    attempts: int = 0
    next_attempt_at: Moment | None = None
    last_attempt_at: Moment | None = None
    last_error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchDetail:
    id: str
    state: WatchState
    labels: dict[str, str]
    view: ShownView
    created_at: Moment
    expires_at: Moment = field(metadata={"description": "then it is reported as `expired`"})
    reported_at: Moment | None
    event_id: str | None = field(metadata={"description": "of its event in `waybill.status`"})
    ended_as: WatchEnd | None
    webhook: WebhookDetail | None


def watch_detail(watch: TokenWatch, delivery: WebhookDelivery | None = None) -> WatchDetail:
    """Return the watch as people see it.

    `delivery` is its newest known delivery; if a redelivery was asked for after it, that one is
    shown as due.
    """
    if delivery is not None and delivery.redelivery < watch.redeliveries:
        now_due = DeliveryState.DUE
        delivery = replace(delivery, state=now_due, attempts=0, at=None, error=None)
    ended = None if delivery is None or watch.webhook is None else STATES.get(delivery.state)
    return WatchDetail(
        id=watch.id,
        state=watch.state if ended is None else ended,
        labels=watch.labels,
        view=view_to_show(watch.view),
        created_at=watch.at,
        expires_at=watch.expires_at,
        reported_at=watch.reported_at,
        event_id=watch.event_id,
        ended_as=watch.ended_as,
        webhook=None if watch.webhook is None else _webhook_detail(watch.webhook, delivery),
    )


def with_secret(detail: WatchDetail, secret: str) -> WatchDetail:
    assert detail.webhook is not None
    return replace(detail, webhook=replace(detail.webhook, secret=secret))


def _webhook_detail(webhook: Webhook, delivery: WebhookDelivery | None) -> WebhookDetail:
    url = without_query(webhook.url)
    if delivery is None:
        return WebhookDetail(url=url)
    return WebhookDetail(
        url=url,
        state=delivery.state,
        attempts=delivery.attempts,
        next_attempt_at=delivery.next_at if delivery.due else None,
        last_attempt_at=delivery.at,
        last_error=delivery.error,
    )
