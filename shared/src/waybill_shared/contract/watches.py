"""Watches: requests to be notified when a token is final.

They are the messages of `waybill.watches`, where the newest of an id counts.
"""

from dataclasses import dataclass, replace

from waybill_shared.contract.token_views import WHOLE, TokenView
from waybill_shared.contract.webhooks import Webhook
from waybill_shared.contract.words import WatchEnd, WatchState


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenWatch:
    """A watch. `token` is sealed, as it was given, and empty after the watch has ended.

    `actor`: the owner of the API key that made it.

    `ended_as`, `event_id`: what was reported, and in which event. `redeliveries`: how often a
    redelivery of that to the webhook was asked for, and when last.
    """

    id: str
    tenant: str
    actor: str
    token: str
    at: int
    expires_at: int
    state: WatchState
    labels: dict[str, str]
    reported_at: int | None = None
    event_id: str | None = None
    ended_as: WatchEnd | None = None
    view: TokenView = WHOLE
    webhook: Webhook | None = None
    redeliveries: int = 0
    redelivery_at: int | None = None

    @property
    def open(self) -> bool:
        return self.state == WatchState.OPEN

    @property
    def closed(self) -> bool:
        return self.state == WatchState.CLOSED


def without_token(watch: TokenWatch) -> TokenWatch:
    return replace(watch, token="")


def as_closed(watch: TokenWatch) -> TokenWatch:
    return replace(without_token(watch), state=WatchState.CLOSED, webhook=None)


def as_reported(watch: TokenWatch, ended_as: WatchEnd, event_id: str, now_ms: int) -> TokenWatch:
    return replace(
        without_token(watch),
        state=WatchState.REPORTED,
        reported_at=now_ms,
        event_id=event_id,
        ended_as=ended_as,
    )
