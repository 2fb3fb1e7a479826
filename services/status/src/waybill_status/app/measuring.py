"""Counts what status answers. Decides nothing."""

from waybill_shared.contract.words import DeliveryState, OutcomeKind, WatchEnd
from waybill_shared.process import metrics
from waybill_status.core.outcomes.outcome import Outcome


def begin_outcomes() -> None:
    """Set each counter to 0, so that the first outcome of each kind shows as growth."""
    for kind in OutcomeKind:
        metrics.count("waybill_outcomes_total", 0, outcome=kind)
    for end in WatchEnd:
        metrics.count("waybill_watches_ended_total", 0, ended_as=end)
    for state in DeliveryState:
        metrics.count("waybill_delivery_attempts_total", 0, then=state)


def count_outcome(outcome: Outcome) -> None:
    metrics.count("waybill_outcomes_total", outcome=outcome.outcome)


def measure_wait(outcome: Outcome, wait_s: float) -> None:
    metrics.observe("waybill_long_poll_seconds", wait_s, outcome=outcome.outcome)


def show_watches(number: int, age_ms: int) -> None:
    metrics.gauge("waybill_watches", number)
    metrics.gauge("waybill_watch_age_seconds", age_ms / 1000)


def count_ended(ended_as: WatchEnd) -> None:
    metrics.count("waybill_watches_ended_total", ended_as=ended_as)


def show_deliveries(number: int) -> None:
    metrics.gauge("waybill_deliveries", number)


def count_attempt(state: DeliveryState) -> None:
    metrics.count("waybill_delivery_attempts_total", then=state)


def show_waiters(waiters: int) -> None:
    metrics.gauge("waybill_waiters", waiters)
