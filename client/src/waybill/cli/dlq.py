"""The commands about dead letters: `dlq list`, `dlq show`, `dlq replay`, `dlq edit`, `dlq put`."""

from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from waybill import questions
from waybill.cli import render
from waybill.cli.asking import require_yes
from waybill.cli.editing import edit_in_editor, edit_of_options, refuse_unreplayable
from waybill.cli.flow import flow_of
from waybill.cli.phase_view import DRIVER_WAIT_S
from waybill.cli.render import Form, OutputOption
from waybill.cli.resending import Sending, report, send_asking
from waybill.cli.session import (
    PipelineArgument,
    TimeoutOption,
    WaitOption,
    command_group,
    connect_to_change,
    direct,
)
from waybill.dead_letters import Edit, RecordLocation
from waybill.fields import Fields

TIMEOUT_S = 60.0  # topics are read while it is asked
HEADER = ("ID", "AT", "STAGE", "SINK", "REASON", "FROM", "MESSAGE")

dlq = command_group("List, show, replay, edit and put records that a pipeline cannot process.")


def _refuse_no_time(since: str | None) -> str | None:
    with suppress(ValueError):
        if since is None or datetime.fromisoformat(since).tzinfo:
            return since
    raise typer.BadParameter(f"{since!r} is no time with a zone, as 2026-11-25T09:00:00Z")


Reason = Literal["malformed", "violated", "failed", "refused", "put_by_operator"]
ReasonOption = Annotated[
    Reason | None, typer.Option("--reason", case_sensitive=False, help="why they died")
]
StageOption = Annotated[str | None, typer.Option("--stage", help="the stage that found them")]
SinceOption = Annotated[
    str | None,
    typer.Option(
        "--since",
        metavar="TIME",
        callback=_refuse_no_time,
        help="as 2026-11-25T09:00:00Z: those since then",
    ),
]
IdArgument = Annotated[str, typer.Argument(metavar="ID", help="as `waybill dlq list` shows it")]


@dlq.command("list")
def list_(
    name: PipelineArgument,
    *,
    reason: ReasonOption = None,
    stage: StageOption = None,
    since: SinceOption = None,
    most: Annotated[int, typer.Option("-n", "--limit", min=1, help="show at most so many")] = 100,
    output: OutputOption = Form.TABLE,
) -> None:
    """Show dead letters, the newest first.

    They are read from the dead-letter topics, as long as these keep them. Key and value are
    shortened with -o json: `waybill dlq show` has all of them.

    \b
    Example:
      waybill dlq list orders --reason malformed

    Exit codes: 0 ok · 1 error, also when there is no such pipeline
    """
    filters = {"reason": reason, "stage": stage, "since": since}
    looked_at = list(islice(_letters(name, filters), most + 1))
    found = looked_at[:most]
    if output is Form.JSON:
        render.as_json({"items": [letter.raw for letter in found]})
    elif found:
        render.data(render.table([_row(letter) for letter in found], header=HEADER))
        if len(looked_at) > most:
            render.talk(_describe_more(name, most, filtered=any(filters.values())))
    else:
        render.talk("the dead-letter topics have none")


def _describe_more(name: str, most: int, *, filtered: bool) -> str:
    """Return what is left out, as in `the newest 100, of about 1200 in all: -n shows more`."""
    flow = None if filtered else flow_of(name)
    in_all = f", of about {flow.dead} in all" if flow is not None and flow.dead > most else ""
    return f"the newest {most}{in_all}: -n shows more"


@dlq.command("show")
def show(name: PipelineArgument, id: IdArgument, output: OutputOption = Form.TABLE) -> None:
    """Show one dead letter: why it was not processed, and the record as it was.

    \b
    Example:
      waybill dlq show orders orders.in.dlq:0:17:4711

    \b
    Exit codes: 0 ok · 1 error, also when retention has removed it
    """
    letter = _letter(name, id)
    if output is Form.JSON:
        render.as_json(letter.raw)
        return
    rows = [(key, str(value)) for key, value in _flat(letter.raw) if value is not None]
    render.data(render.table(rows))


@dlq.command("edit")
def edit(
    name: PipelineArgument,
    id: IdArgument,
    *,
    value: Annotated[
        Path | None,
        typer.Option("--value", metavar="FILE", help="the new value; - for standard input"),
    ] = None,
    key: Annotated[str | None, typer.Option("--key", metavar="TEXT", help="the new key")] = None,
    again: Annotated[bool, typer.Option("--again", help="also if it was replayed before")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="do not ask")] = False,
    output: OutputOption = Form.TABLE,
) -> None:
    """Edit the record of a dead letter, replay it in its place, and print a token.

    Its value opens in $EDITOR, unless you give --value or --key. What you save must fit the schema
    of the input; else it opens again. The dead letter stays as it is, and shows that it was
    replayed. As with `waybill dlq replay`, what comes of the record goes into the sinks that lack
    it, and no others.

    \b
    Example:
      waybill dlq edit orders orders.in.dlq:0:17:4711

    \b
    Exit codes: 0 ok · 1 error, also when nothing was changed, or it cannot be replayed · 2 usage
    """
    letter = _letter(name, id)
    refuse_unreplayable(letter)
    with connect_to_change() as client:

        def send(edited: Edit) -> None:
            sending = Sending(client, name, again=again, yes=yes, edited=edited)
            send_asking(sending, [id])
            report(sending, output)

        edited = edit_of_options(value, key)
        if edited:
            send(edited)
        else:
            edit_in_editor(letter, send)


@dlq.command("replay")
def replay(
    name: PipelineArgument,
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID...", help="which")] = None,
    *,
    everything: Annotated[
        bool, typer.Option("--all", help="all that `waybill dlq list` shows with these options")
    ] = False,
    reason: ReasonOption = None,
    stage: StageOption = None,
    since: SinceOption = None,
    again: Annotated[
        bool, typer.Option("--again", help="also those that were replayed before")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="do not ask")] = False,
    output: OutputOption = Form.TABLE,
) -> None:
    """Replay dead letters in the stages where they died, and print a token for them.

    What comes of them goes into the sinks that lack it, and no others: `waybill dlq show` names
    them beforehand. A letter is replayed once, however often you ask for it; --again does it one
    more time. --all leaves out those that cannot be replayed, and says which.

    \b
    Example:
      waybill dlq replay orders --all --reason malformed | xargs waybill token wait

    Exit codes: 0 ok · 1 error, also when one of the ids cannot be replayed: then none is · 2 usage
    """
    if bool(ids) == everything:
        raise typer.BadParameter("give ids, or --all")
    with connect_to_change() as client:
        filters = {"reason": reason, "stage": stage, "since": since}
        wanted = list(ids or (letter.text("id") for letter in _letters(name, filters)))
        if wanted and everything and not yes:
            what = f"this replays {render.count(len(wanted), 'dead letter')}"
            require_yes(what, "Replay them?", "if all are meant, add --yes")
        sending = Sending(client, name, again=again, yes=yes, leave_out=everything)
        try:
            send_asking(sending, wanted)
            if not sending.done:
                render.talk("there is nothing to replay")
        finally:  # what was sent before a fault has its token, too
            report(sending, output)


@dlq.command("put")
def put(  # noqa: PLR0917 - options of a command line
    name: PipelineArgument,
    record: Annotated[
        str,
        typer.Argument(metavar="TOPIC[PARTITION]@OFFSET", help="the record, as orders.in[0]@4711"),
    ],
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="for those who look at it later")
    ],
    stage: Annotated[
        str | None, typer.Option("--stage", metavar="NAME", help="the only stage that is meant")
    ] = None,
    wait: WaitOption = False,  # noqa: FBT002 - a flag of the command line
    timeout: TimeoutOption = DRIVER_WAIT_S,
    output: OutputOption = Form.TABLE,
) -> None:
    """Put a record into its dead-letter topic before any batch reads it.

    For a record that nobody else can find: one that ends the driver, or lets its batch hang. Its
    token ends dead_lettered, with the reason and who asked. `waybill dlq replay` brings it back.

    The pipeline is restarted: its driver is killed at once, and the next one does this before its
    first batch. What the killed batch had written is not written again. A paused pipeline stays
    paused, a failed one is started. One that is stopped or finished stays so, and does it at its
    next start.

    It is refused if every sink has the record already, if Kafka does not have it, or if no stage of
    the pipeline reads it.

    \b
    Example:
      waybill dlq put orders orders.in[0]@4711 --reason "ends the driver: out of memory"

    \b
    Exit codes: 0 it is there, or accepted · 1 error · 2 usage ·
      4 not done in time: with --wait, or where the change cannot be remembered
    """
    from waybill.cli.operations import finish  # the other commands do not need it

    at = _read_location(record)
    with connect_to_change() as client:
        asked = client.put_dead_letter(name, at, reason, stage=stage)
        finish(client, asked, timeout, output, must_end=wait, command="dlq put")


def _read_location(text: str) -> RecordLocation:
    try:
        return RecordLocation.parse(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _letter(name: str, id: str) -> Fields:
    with closing(direct(TIMEOUT_S)) as connection:
        return connection.ask(questions.dead_letter(name, id))


def _letters(name: str, filters: Mapping[str, str | None]) -> Iterator[Fields]:
    """Yield the dead letters, page by page."""
    with closing(direct(TIMEOUT_S)) as connection:
        cursor: str | None = None
        while True:
            page = connection.ask(questions.dead_letters(name, filters, cursor))
            yield from page.objects("items")
            cursor = page.text_or_none("next_cursor")
            if cursor is None:
                return


def _row(letter: Fields) -> tuple[str, ...]:
    source = letter.object_or_none("source")
    at = "" if source is None else str(RecordLocation.read(source))
    columns = (letter.text_or_none(name) or "" for name in ("stage", "sink", "reason"))
    return (
        letter.text("id"),
        letter.text_or_none("at") or "",
        *columns,
        at,
        letter.text_or_none("message") or "",
    )


def _flat(value: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, object]]:
    for key, each in value.items():
        if isinstance(each, Mapping):
            yield from _flat(each, f"{before}{key}.")
        elif isinstance(each, list) and each and all(isinstance(one, str) for one in each):
            yield f"{before}{key}", ", ".join(each)
        else:
            yield f"{before}{key}", each
