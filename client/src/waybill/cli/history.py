"""The command `history`: what happened to a pipeline in the last 30 days."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from waybill.cli import render
from waybill.cli.events import describe_event
from waybill.cli.render import Form, OutputOption
from waybill.cli.session import PipelineArgument, connect
from waybill.fields import Fields

if TYPE_CHECKING:
    from rich.text import Text

    from waybill.histories import PipelineEvent

TIMEOUT_S = 60.0  # a topic is read while it is asked
LIMIT = 100


def history(
    name: PipelineArgument,
    *,
    most: Annotated[
        int, typer.Option("-n", "--limit", min=1, help="show at most so many, the newest")
    ] = LIMIT,
    output: OutputOption = Form.TABLE,
) -> None:
    """Show what happened to a pipeline in the last 30 days, the newest last.

    Each line has the time, the change of phase or what else happened, the reason, and who asked
    for it. Failures have their attempt, error and hint. With -o json, each event is a line of its
    own. `waybill events NAME --follow` shows what happens next.

    \b
    Example:
      waybill history orders --limit 20
      waybill history orders -n 1000 -o json | jq -r 'select(.phase == "Failed").at'

    Exit codes: 0 ok · 1 error, also when there is no such pipeline
    """
    with connect(TIMEOUT_S) as client:
        looked_at = [*client.history(name, limit=most + 1)]
    found = looked_at[:most][::-1]
    if output is Form.JSON:
        render.data(json.dumps(event.raw, ensure_ascii=False) for event in found)
        return
    if not found:
        render.talk("nothing is known of the last 30 days")
    for event in found:
        render.data(_lines(event))
    if len(looked_at) > most:
        render.talk(f"the newest {most}: --limit shows more")


def _lines(event: "PipelineEvent") -> "Iterator[Text]":
    what, why = describe_event(Fields(event.raw, "an event"))
    attempt = f"attempt {event.attempt}" if event.attempt else ""
    said = (part for part in (why, f"by {event.actor}" if event.actor else "", attempt) if part)
    at = str(event.raw.get("at", ""))
    yield render.words(at, f"{what:<24}", ", ".join(said))
    if event.error is not None and event.phase_from is not None:
        yield render.words(" ", "error:", event.error.message)
        if event.error.hint:
            yield render.words(" ", "hint:", event.error.hint)
