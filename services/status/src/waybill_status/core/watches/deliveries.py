"""Decides what follows an attempt to send an event to a webhook. Pure."""

from dataclasses import dataclass, replace
from typing import Final

from waybill_shared.contract.deliveries import WebhookDelivery
from waybill_shared.contract.words import DeliveryState

FIRST_PAUSE_MS: Final = 5_000
PAUSE_MS_MAX: Final = 3_600_000
JITTER: Final = 0.2  # of a pause, so that those who fail together do not retry together
TRIED_MS: Final = 24 * 3_600_000
DOUBLINGS_MAX: Final = 20
GONE: Final = 410


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """The answer of a webhook: a status, or why there is none. `retry_after_ms`: the pause that it
    asked for. `silent`: the request was sent, and no answer arrived."""

    status: int | None = None
    retry_after_ms: int = 0
    error: str = ""
    silent: bool = False

    @property
    def accepted(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


def after_attempt(
    delivery: WebhookDelivery, answer: Answered, *, now_ms: int, took_ms: int, luck: float
) -> WebhookDelivery:
    """Return the delivery as it is from now on. `took_ms`: the time since the attempt was due, with
    the wait for a permit. `luck`: from 0 to 1. The last attempt is when 24 hours of trying are
    over.

    Those hours are the pauses and the attempts, each measured by one clock. A new owner may have
    another clock, so `since` is moved to where its own clock has it.
    """
    tried_ms = delivery.next_at - delivery.since + took_ms
    tried = replace(delivery, attempts=delivery.attempts + 1, at=now_ms, since=now_ms - tried_ms)
    if answer.accepted:
        return tried.ended(DeliveryState.DELIVERED, now_ms)
    if answer.status == GONE or tried_ms >= TRIED_MS:
        return tried.ended(DeliveryState.FAILED, now_ms, answer.error)
    ends_at = tried.since + TRIED_MS
    pause = min(FIRST_PAUSE_MS * 2 ** min(delivery.attempts, DOUBLINGS_MAX), PAUSE_MS_MAX)
    pause = max(int(pause * (1 + JITTER * luck)), answer.retry_after_ms)
    return replace(tried, next_at=min(now_ms + pause, ends_at), error=answer.error)


def give_up(delivery: WebhookDelivery, now_ms: int, why: str) -> WebhookDelivery:
    return delivery.ended(DeliveryState.FAILED, now_ms, why)


def wait_ms(delivery: WebhookDelivery, now_ms: int) -> int:
    """Return the time until the next attempt. A clock that was set back does not make it longer
    than a pause may be, unless a webhook asked for more."""
    pause_ms = delivery.next_at - (delivery.at or delivery.since)
    longest = max(int(PAUSE_MS_MAX * (1 + JITTER)), pause_ms)
    return min(max(0, delivery.next_at - now_ms), longest)
