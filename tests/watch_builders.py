"""A watch, and the event that it ends with."""

from pydantic import JsonValue

from builders import NOW, TENANT
from waybill_shared.contract.codec import to_json
from waybill_shared.contract.deliveries import WebhookDelivery, new_delivery
from waybill_shared.contract.status_events import StatusEvent, final_event
from waybill_shared.contract.watches import TokenWatch, as_reported
from waybill_shared.contract.webhooks import Webhook
from waybill_shared.contract.words import WatchEnd, WatchState


def make_watch(state: WatchState = WatchState.OPEN) -> TokenWatch:
    return TokenWatch(
        id="e" * 32,
        tenant=TENANT,
        actor="3f9c0a1b2c3d",
        token="wb1.AQ2l8Q3b0yJx",
        at=NOW,
        expires_at=NOW + 30 * 24 * 3_600_000,
        state=state,
        labels={"batch": "7"},
    )


SECRET = bytes(range(24))
HOOK = "https://hooks.example/orders?key=1"


def make_webhook(url: str = HOOK) -> Webhook:
    return Webhook(url=url, secret="c2VhbGVk")


def make_delivery() -> WebhookDelivery:
    watch = as_reported(make_watch(), WatchEnd.COMPLETE, "e.final", NOW)
    return new_delivery(watch, make_webhook(), to_json(make_event()), NOW)


def make_event() -> StatusEvent:
    outcome: dict[str, JsonValue] = {"outcome": "complete", "pipeline": "orders"}
    return final_event(
        make_watch(), WatchEnd.COMPLETE, outcome, source="/waybill/waybill", now_ms=NOW
    )
