"""Watches a token until it is final or the time is over, and tells the outcome."""

import json
from typing import TYPE_CHECKING

from waybill.cli import render
from waybill.cli.progress import ProgressView, progress_rows
from waybill.errors import StillInProgress, StillUnknown
from waybill.outcomes import LostSpan, Outcome

if TYPE_CHECKING:
    from rich.text import Text

    from waybill.client import Client


def watch(client: "Client", token: str, timeout_s: float) -> Outcome:
    """The final outcome, or the last one when the time is over; progress goes to stderr."""
    with ProgressView() as progress:
        outcome: Outcome | None = None
        try:
            for outcome in client.follow(token, timeout_s):
                progress.show(outcome)
        except (StillInProgress, StillUnknown) as error:
            return error.outcome
        assert outcome is not None, "follow ends with an outcome or an error"
        return outcome


def outcome_lines(outcome: Outcome) -> "list[Text]":
    """The outcome for people: its word first, then what each sink, loss and dead letter says."""
    facts = (outcome.kind, outcome.pipeline, outcome.reason, _records(outcome), _duration(outcome))
    lines = [render.words(*(str(fact) for fact in facts if fact))]
    if rows := [("", *row) for row in progress_rows(outcome)]:
        lines += render.table(rows)
    lines += [render.words(" ", "lost", _describe_loss(span)) for span in outcome.lost]
    lines += [render.words(" ", "dead", json.dumps(entry)) for entry in outcome.dead]
    lines += [render.words(" ", "dropped", json.dumps(entry)) for entry in outcome.dropped]
    return lines


def _records(outcome: Outcome) -> str:
    return "" if outcome.accepted is None else render.count(outcome.accepted, "record")


def _duration(outcome: Outcome) -> str:
    if outcome.issued_at is None or outcome.completed_at is None:
        return ""
    took_s = (outcome.completed_at - outcome.issued_at).total_seconds()
    return f"in {took_s:.2f} s" if took_s >= 0.0 else ""  # a token may be made after the fact


def _describe_loss(span: LostSpan) -> str:
    where = f"{span.topic}[{span.partition}]" if span.topic is not None else ""
    offsets = f"{span.start} to {span.end - 1}" if span.start is not None and span.end else ""
    return " ".join(filter(None, (span.reason, where, offsets)))
