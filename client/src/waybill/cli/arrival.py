"""Follows a token until it is final or the time is over, and describes the outcome."""

from typing import TYPE_CHECKING

from waybill.cli import render
from waybill.cli.progress import ProgressView, progress_rows
from waybill.dead_letters import DeadLetter, Dropped
from waybill.errors import StillInProgress, StillUnknown
from waybill.outcomes import LostSpan, Outcome

if TYPE_CHECKING:
    from rich.text import Text

    from waybill.sync.client import Client

DEAD_LINES_MAX = 10  # then it is no answer to read, but a list
MORE_MAY_BE = "more of it may be: some is still to come; ask again when nothing is"


def watch(client: "Client", token: str, timeout_s: float) -> Outcome:
    """Return the final outcome, or the last one when the time is over; progress goes to stderr."""
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
    """Return the outcome for people: first its word, then each sink, loss, dead letter and drop."""
    facts = (outcome.kind, outcome.pipeline, outcome.reason, _records(outcome), _duration(outcome))
    lines = [render.words(*(str(fact) for fact in facts if fact))]
    if rows := [("", *row) for row in progress_rows(outcome)]:
        lines += render.table(rows)
    lines += [render.words(" ", "lost", _describe_loss(span)) for span in outcome.lost]
    if outcome.lost and not outcome.settled:
        lines.append(render.words(" ", "lost", MORE_MAY_BE))
    lines += _dead_lines(outcome)
    lines += [render.words(" ", "dropped", _describe_drop(drop)) for drop in outcome.dropped]
    return lines


def _dead_lines(outcome: Outcome) -> "list[Text]":
    """Return a line for each of the first dead letters, and one that says how to see the others.

    The command that lists all of them needs the name of one pipeline.
    """
    if not outcome.dead:
        return []
    lines = render.table([_dead_row(dead) for dead in outcome.dead[:DEAD_LINES_MAX]])
    left = len(outcome.dead) - DEAD_LINES_MAX
    if left > 0 or outcome.dead_truncated:
        more = "more" if outcome.dead_truncated else f"{left} more"
        rest = f"and {more}; in all at most {render.count(outcome.dead_count, 'record')}"
        name = outcome.pipeline or "PIPELINE"
        lines.append(render.words("  dead", f"{rest}: -o json, or `waybill dlq list {name}`"))
    return lines


def _dead_row(dead: DeadLetter) -> tuple[str, ...]:
    where = f"{dead.topic}[{dead.partition}]"
    if dead.exact:
        where = f"{where}@{dead.offset}"
    else:
        where = f"{where} {dead.start} to {dead.end - 1}, up to {dead.up_to}"
    who = f"{dead.stage}.{dead.sink}" if dead.sink else dead.stage
    why = f"{dead.reason} {dead.rule}" if dead.rule else dead.reason
    message = " ".join(dead.message.split())
    return ("", "dead", where, who, why, str(dead.dead_letter or ""), message)


def _describe_drop(drop: Dropped) -> str:
    return f"up to {render.count(drop.up_to, 'record')} by {drop.rule} in {drop.stage}"


def _records(outcome: Outcome) -> str:
    facts = []
    if outcome.accepted is not None:
        facts.append(render.count(outcome.accepted, "record"))
    if outcome.dead_count:
        exact = all(dead.exact for dead in outcome.dead)
        facts.append(f"{'' if exact else 'up to '}{outcome.dead_count} dead")
    return ", ".join(facts)


def _duration(outcome: Outcome) -> str:
    if outcome.issued_at is None or outcome.completed_at is None:
        return ""
    took_s = (outcome.completed_at - outcome.issued_at).total_seconds()
    return f"in {took_s:.2f} s" if took_s >= 0.0 else ""  # a token may be made after the fact


def _describe_loss(span: LostSpan) -> str:
    where = f"{span.topic}[{span.partition}]" if span.topic is not None else ""
    offsets = f"{span.start} to {span.end - 1}" if span.start is not None and span.end else ""
    return " ".join(filter(None, (span.reason, where, offsets)))
