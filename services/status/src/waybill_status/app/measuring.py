"""Counts what status answers. Takes no decisions."""

from waybill_shared.contract.words import OutcomeKind
from waybill_shared.process import metrics
from waybill_status.core.outcomes import Outcome


def begin_outcomes() -> None:
    """A first one of each kind shows as growth."""
    for kind in OutcomeKind:
        metrics.count("waybill_outcomes_total", 0, outcome=kind)


def count_outcome(outcome: Outcome) -> None:
    metrics.count("waybill_outcomes_total", outcome=outcome.outcome)


def measure_held(outcome: Outcome, held_s: float) -> None:
    metrics.observe("waybill_held_request_seconds", held_s, outcome=outcome.outcome)


def show_waiters(waiters: int) -> None:
    metrics.gauge("waybill_waiters", waiters)
