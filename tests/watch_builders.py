"""A watch, and the event that it ends with."""

from pydantic import JsonValue

from builders import NOW, TENANT
from waybill_shared.contract.status_events import StatusEvent, final_event
from waybill_shared.contract.watches import TokenWatch
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


def make_event() -> StatusEvent:
    outcome: dict[str, JsonValue] = {"outcome": "complete", "pipeline": "orders"}
    return final_event(
        make_watch(), WatchEnd.COMPLETE, outcome, source="/waybill/waybill", now_ms=NOW
    )
