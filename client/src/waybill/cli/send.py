"""The command `send`: records from a file, a pipe or the command line, and what became of them."""

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from waybill.cli import exits, render
from waybill.cli.arrival import outcome_lines, watch
from waybill.cli.exits import ExitCode
from waybill.cli.render import Form, OutputOption
from waybill.cli.session import (
    GenerationOption,
    InputArgument,
    PipelineArgument,
    connect_to_change,
)
from waybill.errors import Invalid, WaybillError
from waybill.models import Rejected
from waybill.ndjson import Chunk, chunks
from waybill.outcomes import Outcome

if TYPE_CHECKING:
    from waybill.client import Client

STDIN = "-"
ARRAY = "["
KEY_CHARACTERS_MAX = 240
SOURCE = "FILE|-|RECORD"
TAKEN = "give one JSON object, a file with one a line (NDJSON), or - for standard input"


@dataclass(slots=True, kw_only=True)
class Delivery:
    """Everything sent by one command, and what became of it so far."""

    pipeline: str
    input: str
    output: Form
    generation: int | None = None
    key: str | None = None
    chunks: int = 0
    tokens: list[str] = field(default_factory=list)
    accepted: int = 0
    rejected: list[dict[str, object]] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)

    def send_all(self, client: "Client", lines: Iterable[bytes]) -> None:
        last_line = 0
        for chunk in chunks(lines):
            try:
                self._send(client, chunk)
            except WaybillError:
                if last_line:
                    render.complain(
                        f"all up to line {last_line} was sent, the request after it failed"
                    )
                raise
            last_line = chunk.line_numbers[-1]
        if not last_line:
            raise WaybillError("there were no records to send: write one JSON object a line")
        render.talk(f"{self.accepted} accepted, {len(self.rejected)} rejected")

    def follow_all(self, client: "Client", wait_s: float) -> None:
        """One time limit for all tokens: each gets what those before it have left."""
        ends_at = time.monotonic() + wait_s
        for number, token in enumerate(self.tokens, start=1):
            if len(self.tokens) > 1:
                render.talk(f"token {number} of {len(self.tokens)}")
            outcome = watch(client, token, max(0.0, ends_at - time.monotonic()))
            self.outcomes.append(outcome)
            if self.output is Form.TABLE:
                render.data(outcome_lines(outcome))

    def tell_json(self) -> None:
        """Also after a failure: what was sent has its tokens."""
        if self.output is Form.JSON and (self.tokens or self.rejected):
            render.as_json(
                {
                    "tokens": self.tokens,
                    "accepted": self.accepted,
                    "rejected": self.rejected,
                    "outcomes": [outcome.raw for outcome in self.outcomes],
                }
            )

    def exit_code(self) -> ExitCode:
        """A rejected row outweighs all else: it is nowhere, and no token asks for it."""
        if self.rejected:
            return ExitCode.ERROR
        return exits.worst([exits.of_outcome(outcome) for outcome in self.outcomes])

    def _send(self, client: "Client", chunk: Chunk) -> None:
        try:
            receipt = client.send(
                self.pipeline,
                self.input,
                chunk.lines,
                generation=self.generation,
                key=self._next_key(),
            )
        except Invalid as problem:
            if not problem.rejected:
                raise
            self._reject(chunk, problem.rejected)
            render.hint(problem)
            return
        self._reject(chunk, receipt.rejected)
        self.accepted += receipt.accepted
        self.tokens.append(receipt.token)
        if self.output is Form.TABLE:
            render.data([receipt.token])

    def _next_key(self) -> str | None:
        """Each chunk has one: the first that which was given."""
        self.chunks += 1
        return self.key if self.key is None or self.chunks == 1 else f"{self.key}/{self.chunks}"

    def _reject(self, chunk: Chunk, rejected: Iterable[Rejected]) -> None:
        for row in rejected:
            line = chunk.line_numbers[row.index]
            self.rejected.append({"line": line, "reason": row.reason})
            render.complain(f"line {line}: {row.reason}")


def send(
    pipeline: PipelineArgument,
    input: InputArgument,
    source: Annotated[
        str,
        typer.Argument(
            metavar=SOURCE,
            help="a file of JSON records, one a line; - for stdin; or one record, as '{...}'",
        ),
    ] = STDIN,
    wait: Annotated[
        float | None,
        typer.Option(
            "--wait",
            min=0.0,
            metavar="SECONDS",
            help="follow until all has arrived, so long at most",
        ),
    ] = None,
    *,
    key: Annotated[
        str | None,
        typer.Option(
            "--key",
            help="makes it safe to run the same command again, for a day: nothing is written twice",
        ),
    ] = None,
    generation: GenerationOption = None,
    output: OutputOption = Form.TABLE,
) -> None:
    """Send records to an input of a pipeline and print their token.

    Records are JSON objects, one a line. They go in chunks of 1000 records or 1 MB, each with a
    token of its own, printed as it comes; a chunk goes when it is full or the source ends. Rows
    that are rejected are told with their line number, the others are kept. With --wait, every
    token is followed until it is final.

    When a connection breaks, a chunk is sent again by itself; it is never written twice. With --key
    you can run the whole command again, with the same source.

    \b
    Example:
      waybill send orders orders '{"order_id": 1, "amount": 12.5}' --wait 30
      waybill send orders orders rows.ndjson
      jq -c '.[]' rows.json | waybill send orders orders - --wait 120 -o json

    \b
    Exit codes: 0 all accepted, with --wait: complete · 1 error, or a row was rejected · 2 usage ·
      3 dead-lettered or lost · 4 still in progress when the time was over · 5 unknown
    """
    if key is not None and not 0 < len(key) <= KEY_CHARACTERS_MAX:
        told = f"a key has 1 to {KEY_CHARACTERS_MAX} characters: each chunk adds its number"
        raise typer.BadParameter(told, param_hint="--key")
    delivery = Delivery(
        pipeline=pipeline, input=input, output=output, generation=generation, key=key
    )
    try:
        with _lines(source) as lines, connect_to_change() as client:
            delivery.send_all(client, lines)
            if wait is not None:
                delivery.follow_all(client, wait)
    finally:
        delivery.tell_json()
    raise typer.Exit(delivery.exit_code())


@contextmanager
def _lines(source: str) -> Iterator[Iterable[bytes]]:
    if source == STDIN:
        if sys.stdin.isatty():
            render.talk("reading records from the terminal, one JSON object a line; Ctrl-D ends")
        yield _records(sys.stdin.buffer)
    elif source.lstrip().startswith("{"):
        yield [source.replace("\n", " ").encode()]
    else:
        with _open(source) as file:
            yield _records(file)


def _open(source: str) -> BinaryIO:
    try:
        return Path(source).open("rb")
    except OSError as error:
        if source.lstrip().startswith(ARRAY):
            told = f"a JSON array is not taken: {TAKEN}"
        else:
            told = f"cannot read {source}: {error.strerror}; {TAKEN}"
        raise typer.BadParameter(told, param_hint=SOURCE) from error


def _records(lines: Iterable[bytes]) -> Iterator[bytes]:
    for number, line in enumerate(lines, start=1):
        if number == 1 and line.lstrip().startswith(ARRAY.encode()):
            raise typer.BadParameter(
                "this is a JSON array, one record a line is expected: try jq -c '.[]'",
                param_hint=SOURCE,
            )
        yield line
