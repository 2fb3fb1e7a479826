"""The commands about dead letters: `dlq list`, `dlq show`, `dlq replay`, `dlq put`."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from datetime import datetime
from itertools import islice
from typing import Annotated, Any, Literal

import typer

from waybill import questions
from waybill.cli import render
from waybill.cli.asking import require_yes
from waybill.cli.flow import flow_of
from waybill.cli.phase_view import DRIVER_WAIT_S
from waybill.cli.render import Form, OutputOption
from waybill.cli.resending import Sending
from waybill.cli.session import (
    PipelineArgument,
    TimeoutOption,
    WaitOption,
    command_group,
    connect_to_change,
    direct,
)
from waybill.dead_letters import RecordLocation
from waybill.errors import Conflict
from waybill.fields import Fields

TIMEOUT_S = 60.0  # topics are read while it is asked
LEFT_OUT_SHOWN = 5
HEADER = ("ID", "AT", "STAGE", "SINK", "REASON", "FROM", "MESSAGE")

dlq = command_group("List, show, replay and put records that a pipeline cannot process.")


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
    with closing(direct(TIMEOUT_S)) as connection:
        letter = connection.ask(questions.dead_letter(name, id))
    if output is Form.JSON:
        render.as_json(letter.raw)
        return
    rows = [(key, str(value)) for key, value in _flat(letter.raw) if value is not None]
    render.data(render.table(rows))


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
            _send(sending, wanted)
            if not sending.done:
                render.talk("there is nothing to replay")
        finally:  # what was sent before a fault has its token, too
            _print(sending, output)


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


def _send(sending: Sending, wanted: Sequence[str]) -> None:
    """Replay them; ask where an old row may take the place of a newer one."""
    try:
        sending.send(wanted)
    except Conflict as refusal:
        if refusal.slug != "replay_not_confirmed" or sending.yes:
            raise
        require_yes(str(refusal), "Replay them all the same?", "if that is meant, add --yes")
        sending.yes = True
        sending.send(wanted)


def _print(sending: Sending, output: Form) -> None:
    for letter, why in islice(sending.left_out.items(), LEFT_OUT_SHOWN):
        render.talk(f"left out: {letter}: {why}")
    if (more := len(sending.left_out) - LEFT_OUT_SHOWN) > 0:
        render.talk(f"left out: {more} more")
    if not sending.done:
        return
    token = sending.token()
    if output is Form.JSON:
        done = {"replayed": sending.replayed, "already": sending.already, "sinks": sending.sinks}
        render.as_json({"token": token, **done, "left_out": list(sending.left_out)})
    else:
        before = f", {sending.already} were before" if sending.already else ""
        into = f", into {', '.join(sending.sinks)}" if sending.sinks else ""
        render.talk(f"{render.count(sending.replayed, 'letter')} replayed{before}{into}")
        render.exactly(token)


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
