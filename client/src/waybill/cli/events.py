"""The command `events`: what has happened to a pipeline, and what happens next."""

import json
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from waybill.cli import render
from waybill.cli.render import Form, OutputOption
from waybill.cli.session import connect, direct, list_pipelines, not_empty
from waybill.cli.watches import LabelOption, labels_of
from waybill.errors import NotReady, UnexpectedAnswer, Unreachable
from waybill.fields import Fields
from waybill.questions import Question, event_stream, pipeline_past

if TYPE_CHECKING:
    from waybill.sync.connection import Connection

TIMEOUT_S = 30.0
SILENCE_S_MAX = 45.0  # the service says every 15 s that it lives
WIDTH = 30  # of what happened: two phases, such as CheckpointStopping -> Stopped
AGAIN_S = 1.0  # between two tries of a stream that broke


def events(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="PIPELINE",
            help="its name; without one what is written to waybill.status is followed",
            callback=not_empty,
            autocompletion=list_pipelines,
        ),
    ] = None,
    follow: Annotated[  # noqa: FBT002 - a flag of the command line
        bool, typer.Option("-f", "--follow", help="go on with what happens from now on")
    ] = False,
    type: Annotated[
        list[str] | None,
        typer.Option("--type", help="of events of waybill.status; several may be given"),
    ] = None,
    label: LabelOption = None,
    output: OutputOption = Form.TABLE,
) -> None:
    """Show what happened to a pipeline lately, or follow the events of waybill.status.

    Starts, changes of its phase, failures with their hint, and what it had to wait for: the newest
    500. With --follow it shows those of the last day, and goes on until Ctrl-C, also over a restart
    of Waybill. With -o json, each event is a line of its own. `waybill history` shows more.

    Without a pipeline, --follow shows all events of waybill.status from now on: tokens that are
    watched, batches, phases, tables and dead letters. --type shows those of one type.

    \b
    Example:
      waybill events orders
      waybill events --follow --type waybill.token.final -o json | jq .data.outcome
      waybill events orders --follow -o json | jq .phase

    Exit codes: 0 ok · 1 error, also when there is no such pipeline · 130 Ctrl-C
    """
    if name is None:
        if not follow:
            raise typer.BadParameter("name a pipeline, or add --follow", param_hint="PIPELINE")
        _follow_all(type or [], labels_of(label or []), output)
        return
    if type or label:
        raise typer.BadParameter("--type and --label do not go with a pipeline")
    question = pipeline_past(name, "events")
    connection = direct(TIMEOUT_S)
    try:
        if follow:
            for event in _follow(connection, question):
                _print(event, output)
        else:
            for event in connection.ask(question).objects("items"):
                _print(event, output)
    finally:
        connection.close()


def _follow_all(types: list[str], labels: dict[str, str], output: Form) -> None:
    with connect() as client:
        for event in client.events(types=types, labels=labels):
            if output is Form.JSON:
                render.data([json.dumps(event.raw, ensure_ascii=False)])
                continue
            at = str(event.raw.get("time", ""))
            ended = str(event.data.get("ended_as", ""))
            render.data([render.words(at, event.type, event.subject, ended, event.pipeline or "")])


def _follow(connection: "Connection", question: Question) -> Iterator[Fields]:
    """Yield all events, each once; after a broken stream, continue after the last event."""
    last_id: str | None = None
    while True:
        try:
            for event in _stream(connection, event_stream(question, last_id)):
                last_id = event.text("id")
                yield event
        except (Unreachable, NotReady):
            if not connection.line.has_answered:
                raise
            render.talk("the stream broke; trying again")
        time.sleep(AGAIN_S)


def _stream(connection: "Connection", question: Question) -> Iterator[Fields]:
    from waybill.sse import EventReader

    reader = EventReader()
    with connection.listen(question, silence_s=SILENCE_S_MAX) as pieces:
        for piece in pieces:
            for event in reader.read(piece):
                if event is None or event.name not in {"event", "gap"}:
                    continue
                found = Fields(_json(event.data), f"an event of {question.path}")
                if event.name == "event":
                    yield found
                else:
                    render.complain(f"events may be missing here: {found.text('gap')}")


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError as error:
        raise UnexpectedAnswer(f"an event is not JSON: {error}") from error


def _print(event: Fields, output: Form) -> None:
    if output is Form.JSON:
        render.data([json.dumps(event.raw, ensure_ascii=False)])
        return
    what, why = describe_event(event)
    render.data([render.words(event.text("at"), f"{what:<{WIDTH}}", why)])
    failure = event.object_or_none("error")
    if failure is not None and event.text("kind") == "transition":
        render.data([render.words(" ", "error:", failure.text("message"))])
        if hint := failure.text_or_none("hint"):
            render.data([render.words(" ", "hint:", hint)])


def describe_event(event: Fields) -> tuple[str, str]:
    """Return what has happened, and why."""
    if (kept := event.object_or_none("maintenance")) is not None:
        done = kept.object_or_none("done")
        counts = () if done is None else (f"{number} {of}" for of, number in done.raw.items())
        problem = kept.text_or_none("problem")
        why = ", ".join(counts) if problem is None else f"not done: {problem}"
        return f"{kept.text('task')}: {kept.text('sink')}", why
    moved = f"{event.text_or_none('phase_from') or ''} -> {event.text('phase')}".strip()
    trusted = event.text_or_none("sql_guard") == "trusted"
    claimed = "claimed, SQL guard: trusted" if trusted else "claimed"
    known = {"transition": moved, "claim": claimed, "schedule": "time of its schedule"}
    what = known.get(event.text("kind"), _obstacle(event))
    return what, event.text_or_none("reason") or ""


def _obstacle(event: Fields) -> str:
    if event.text("kind") == "degraded":
        found = event.objects("conditions")
        return "; ".join(f"degraded: {each.text('cause')}{_of_stage(each)}" for each in found)
    blocked_by = event.text_or_none("blocked_by")
    return "no longer blocked or degraded" if blocked_by is None else f"blocked: {blocked_by}"


def _of_stage(condition: Fields) -> str:
    stage = condition.text_or_none("stage")
    return "" if stage is None else f" in stage {stage}"
