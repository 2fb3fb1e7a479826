"""The commands about tokens: `token show`, `token wait`, `token for`, `token merge`."""

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from waybill.cli import exits, render
from waybill.cli.arrival import outcome_lines, watch
from waybill.cli.render import Form, OutputOption
from waybill.cli.session import (
    GenerationOption,
    PipelineArgument,
    TimeoutOption,
    command_group,
    connect,
    list_inputs,
    not_empty,
)
from waybill.models import Position
from waybill.outcomes import Outcome

if TYPE_CHECKING:
    from waybill.sync.client import Client

tokens = command_group("Ask what became of records: show, wait for, make and merge tokens.")

STDIN = "-"
TOKENS_HELP = "as `waybill send` prints them; - for stdin"


def _none_empty(given: list[str]) -> list[str]:
    for text in given:
        not_empty(text)
    return given


TokensArgument = Annotated[
    list[str], typer.Argument(metavar="TOKEN...", help=TOKENS_HELP, callback=_none_empty)
]


@tokens.command("show")
def show(given: TokensArgument, output: OutputOption = Form.TABLE) -> None:
    """Show what became of the tokens' records, as it is now.

    Several tokens get one outcome, that of all their records: they are merged first, as `waybill
    token merge` does.

    \b
    Example:
      waybill token show wb1.AbC…
      waybill token show wb1.AbC… -o json | jq .outcome

    \b
    Exit codes: 0 complete · 1 error, also for a token that is none of ours ·
      3 dead-lettered or lost · 4 still in progress · 5 unknown now
    """
    with connect() as client:
        outcome = client.outcome(_one(client, given))
    _print(outcome, output)


@tokens.command("wait")
def wait(
    given: TokensArgument, timeout: TimeoutOption = 60.0, output: OutputOption = Form.TABLE
) -> None:
    """Follow tokens until all their records have arrived, or never will.

    Several tokens are merged first, as `waybill token merge` does, and followed as one.

    Progress goes to stderr, one line per change; the outcome goes to stdout and names the Iceberg
    snapshot that holds the records.

    \b
    Example:
      waybill token wait wb1.AbC… --timeout 120
      waybill token wait $(waybill send orders orders rows.ndjson) && run-the-report

    \b
    Exit codes: 0 complete · 1 error · 3 dead-lettered or lost ·
      4 still in progress when the time was over · 5 unknown when the time was over
    """
    with connect() as client:
        outcome = watch(client, _one(client, given), timeout)
    _print(outcome, output)


@tokens.command("for")
def make(
    pipeline: PipelineArgument,
    input: Annotated[
        str | None,
        typer.Argument(
            metavar="INPUT",
            help="the input: all that it holds now",
            autocompletion=list_inputs,
        ),
    ] = None,
    connector: Annotated[
        str | None,
        typer.Option("--connector", help="of the input: only what it has written by now"),
    ] = None,
    position: Annotated[
        list[str] | None,
        typer.Option(
            "--position",
            metavar="TOPIC:TOPIC_ID:PARTITION:OFFSET",
            help="a record's place in Kafka, from its delivery report; may be repeated",
        ),
    ] = None,
    *,
    generation: GenerationOption = None,
    output: OutputOption = Form.TABLE,
) -> None:
    """Make a token for records that went straight to Kafka.

    Name an input for all that it has now and that all sinks read: not what was written before a
    stage that begins at latest. Or name the positions of your own records.

    \b
    Example:
      waybill token for orders orders
      waybill token for shop price --connector prices
      waybill token for orders --position orders.in:Hb0c2kS1TJmAqf3Ydm0Q2w:0:41

    \b
    Exit codes: 0 the token is on stdout · 1 error, also for a position beyond the topic's end ·
      2 usage
    """
    if (input is None) == (not position):
        raise typer.BadParameter("name either an INPUT or at least one --position")
    if connector is not None and input is None:
        raise typer.BadParameter("--connector belongs to an INPUT")
    positions = [_position(text) for text in position] if position else None
    with connect() as client:
        issued = client.token_for(
            pipeline,
            input=input,
            positions=positions,
            connector=connector,
            generation=generation,
        )
    if output is Form.JSON:
        render.as_json(issued.raw)
    else:
        render.data([issued.token])


@tokens.command("merge")
def merge(
    given: Annotated[
        list[str] | None,
        typer.Argument(metavar="TOKEN...", help=TOKENS_HELP),
    ] = None,
    output: OutputOption = Form.TABLE,
) -> None:
    """Make one token of many: it covers exactly what they cover.

    Without arguments, or for -, tokens are read from stdin, one a line. They may be of several
    pipelines. The merged token is as old as the oldest of them; 10,000 is the most at once.

    \b
    Example:
      waybill token merge < tokens.txt
      waybill token merge wb1.AbC… wb1.DeF…

    \b
    Exit codes: 0 the token is on stdout · 1 error, also when one of them is no token of ours ·
      2 usage
    """
    texts = _tokens(given or [STDIN])
    with connect() as client:
        merged = client.merge(texts)
    if output is Form.JSON:
        render.as_json({"token": str(merged), "merged": len(texts)})
    else:
        render.data([str(merged)])


def _one(client: "Client", given: Iterable[str]) -> str:
    """Return one token for all; a single one goes as it is, because a merged one is longer."""
    texts = _tokens(given)
    return texts[0] if len(texts) == 1 else client.merge(texts)


def _tokens(given: Iterable[str]) -> list[str]:
    texts = list(_read(given))
    if not texts:
        raise typer.BadParameter("there are no tokens: give them, or write them to stdin")
    return texts


def _read(given: Iterable[str]) -> Iterator[str]:
    for text in given:
        if text != STDIN:
            yield text
            continue
        if sys.stdin.isatty():
            render.talk("reading tokens from the terminal, one a line; Ctrl-D ends")
        yield from (line.strip() for line in sys.stdin if line.strip())


def _position(text: str) -> Position:
    parts = text.rsplit(":", 3)
    try:
        topic, topic_id, partition, offset = parts
        return Position(
            topic=topic, topic_id=topic_id, partition=int(partition), offset=int(offset)
        )
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} should be TOPIC:TOPIC_ID:PARTITION:OFFSET, as in "
            "orders.in:Hb0c2kS1TJmAqf3Ydm0Q2w:0:41",
            param_hint="--position",
        ) from None


def _print(outcome: Outcome, output: Form) -> None:
    if output is Form.JSON:
        render.as_json(outcome.raw)
    else:
        render.data(outcome_lines(outcome))
    raise typer.Exit(exits.of_outcome(outcome))
