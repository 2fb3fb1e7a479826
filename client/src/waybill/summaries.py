"""Describes an outcome in one line for people: its word, and what is missing and why."""

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from waybill.outcomes import Outcome

FACTS_MAX = 3  # a line of a log is read to its end


def summary(outcome: "Outcome") -> str:
    match outcome.kind:
        case "lost":
            facts = [*_losses(outcome), *_waiting_for(outcome)]
        case "dead_lettered":
            facts = list(_dead_letters(outcome))
        case "in_progress":
            facts = list(_waiting_for(outcome))
        case _:
            facts = [outcome.reason] if outcome.reason else []
    if len(facts) > FACTS_MAX:
        facts[FACTS_MAX:] = [f"and {len(facts) - FACTS_MAX} more"]
    return f"{outcome.kind}: {', '.join(facts)}" if facts else f"{outcome.kind}"


def _losses(outcome: "Outcome") -> Iterator[str]:
    """Yield the number of lost offsets, by topic and reason.

    They are called records only if the token counts records: else an offset may have none.
    """
    thing = "offset" if outcome.accepted is None else "record"
    sizes: Counter[tuple[str | None, str]] = Counter()
    for span in outcome.lost:
        size = 0 if span.start is None or span.end is None else span.end - span.start
        sizes[span.topic, span.reason] += size
    for (topic, reason), size in sizes.items():
        things = thing if size == 1 else f"{thing}s"
        yield f"{size} {things} of {topic} ({reason})" if topic and size else reason


def _dead_letters(outcome: "Outcome") -> Iterator[str]:
    """Yield the number of dead letters, by topic and reason.

    A record that two sinks refuse is one. A number that is not known exactly is `up to` so many.
    """
    if outcome.dead_truncated:
        yield f"up to {outcome.dead_count} records"
        return
    exact: dict[tuple[str, str], set[tuple[int, int]]] = {}
    up_to: Counter[tuple[str, str]] = Counter()
    for dead in outcome.dead:
        places = exact.setdefault((dead.topic, dead.reason), set())
        if dead.exact:
            places.add((dead.partition, dead.offset))
        else:
            up_to[dead.topic, dead.reason] += dead.up_to
    for kind, places in exact.items():
        size = len(places) + up_to[kind]
        things = "record" if size == 1 else "records"
        yield f"{'up to ' if up_to[kind] else ''}{size} {things} of {kind[0]} ({kind[1]})"


def _waiting_for(outcome: "Outcome") -> Iterator[str]:
    """Yield what is still to come and what blocks it; of several pipelines as `pipeline.sink`."""
    stages = [(f"{part.pipeline}.", stage) for part in outcome.parts for stage in part.stages]
    for owner, stage in stages or [("", stage) for stage in outcome.stages]:
        for sink in stage.sinks:
            if sink.behind:
                yield f"{sink.behind} to come in {owner}{sink.name}"
        if stage.blocked_by:
            at = stage.next_run_at
            until = "" if at is None else f" until {at.isoformat(timespec='seconds')}"
            yield f"{owner}{stage.stage} blocked by {stage.blocked_by}{until}"
