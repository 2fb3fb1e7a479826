"""Prints data to stdout, and talk to stderr; colour only on a terminal and without NO_COLOR.

Never asks Waybill anything. Text from elsewhere loses its control characters here.
"""

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from waybill.errors import (
    PhaseNotReached,
    PhaseOutOfReach,
    PipelineFailed,
    ProblemError,
    Unreachable,
    WaybillError,
)
from waybill.models import Fault

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

STYLES = {
    "green": "complete committed done Running ready running ok",
    "red": "dead_lettered lost failed Failed error: stuck: wrong",
    "yellow": "in_progress waiting blocked pending Starting Recovering Rescaling Restarting"
    " Draining CheckpointStopping Stopping hint: warn warning: fix:",
    "magenta": "unknown Unknown",
}
STYLE_BY_WORD = {word: style for style, words in STYLES.items() for word in words.split()}


_quiet = False


class Form(StrEnum):
    """The forms of printed data."""

    TABLE = "table"
    JSON = "json"


def _nearest(context: typer.Context, form: Form) -> Form:
    """Return the form as given after the command's name, else as given before it."""
    source = context.get_parameter_source("output")
    if source is not None and source.name == "COMMANDLINE":
        context.meta[__name__] = form  # seen by the commands inside, too
    return Form(context.meta.get(__name__, form))


OutputOption = Annotated[
    Form,
    typer.Option(
        "-o", "--output", help="how to print the answer", callback=_nearest, case_sensitive=False
    ),
]


def data(lines: "Iterable[Text | str]") -> None:
    """Print lines to stdout, at once: a reader of a pipe sees each as it comes."""
    _print(lines, sys.stdout)
    sys.stdout.flush()


def talk(*lines: "Text | str") -> None:
    """Print what is good to know to stderr; nothing when asked to be quiet."""
    if not _quiet:
        _print(lines, sys.stderr)


def complain(*lines: "Text | str") -> None:
    """Print what must be known to stderr: errors, warnings, rows that were rejected."""
    _print(lines, sys.stderr)


def be_quiet(quiet: bool) -> None:
    """Print only answers and complaints from now on, in this process, if `quiet`."""
    global _quiet  # noqa: PLW0603 - set once, by the command line
    _quiet = quiet


def lively() -> bool:
    """Return True if something may be redrawn on stderr."""
    printer = console(sys.stderr)
    return not _quiet and printer.is_terminal and not printer.is_dumb_terminal


def exactly(text: str) -> None:
    """Print a text as it is to a file or a pipe; a terminal obeys none of its control
    characters."""
    if sys.stdout.isatty():
        data(text.splitlines())
    else:
        sys.stdout.buffer.write(text.encode())
        sys.stdout.flush()


def as_json(value: object) -> None:
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def failure(error: WaybillError) -> None:
    """Print what went wrong, the hint, and the request id to ask an operator about."""
    # The text of a problem has the hint, which is a line of its own here.
    said = (error.detail or error.title) if isinstance(error, ProblemError) else str(error)
    if isinstance(error, PhaseOutOfReach):
        said = said.removesuffix(f": {error.hint}")
    complain(words("error:", said))
    if isinstance(error, PhaseOutOfReach):
        complain(words("hint:", error.hint))
    if isinstance(error, PipelineFailed | PhaseNotReached):
        complain(
            words("hint:", f"`waybill describe {error.pipeline.name}` says why, and what to do")
        )
    if isinstance(error, Unreachable):
        complain(words("hint:", "`waybill doctor` says what is wrong"))
    if isinstance(error, ProblemError):
        hint(error)
        if error.request_id:
            complain(f"request id {error.request_id}")


def hint(problem: ProblemError) -> None:
    if problem.hint:
        complain(words("hint:", problem.hint))


def fault_text(fault: Fault, file: str) -> str:
    """Return `file:line:column: message` as editors and people read it, the hint below."""
    place = ":".join(str(part) for part in (file, fault.line, fault.column) if part is not None)
    path = f"{fault.path}: " if fault.path else ""
    hint = f"\n    hint: {fault.hint}" if fault.hint else ""
    return f"{place}: {path}{fault.message}{hint}"


def words(*parts: str) -> "Text":
    """Return the words of one line, each in its colour."""
    from rich.text import Text

    return Text(" ").join(Text(clean(part), style=STYLE_BY_WORD.get(part, "")) for part in parts)


def table(rows: Sequence[Sequence[str]], *, header: Sequence[str] = ()) -> "list[Text]":
    """Return aligned columns, with two spaces between them and no borders.

    Empty last cells leave no blanks.
    """
    from rich.text import Text

    cells = [[clean(cell) for cell in row] for row in ([header] if header else []) + list(rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = []
    for row in cells:
        line = Text("  ").join(
            Text(cell.ljust(width), style=STYLE_BY_WORD.get(cell, ""))
            for cell, width in zip(row, widths, strict=True)
        )
        line.rstrip()
        lines.append(line)
    return lines


def count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def spell(name: str) -> str:
    """Return a name of the interface as people say it.

    For example, `iceberg snapshot` for `iceberg_snapshot_id`.
    """
    return name.removesuffix("_id").replace("_", " ")


def clean(text: str) -> str:
    """Return the text with its control characters shown, so that a terminal does not obey them."""
    return "".join(
        char if char.isprintable() or char == "\n" else char.encode("unicode_escape").decode()
        for char in text
    )


@contextmanager
def busy(doing: str) -> Iterator[None]:
    """Show on a terminal what is waited for; elsewhere nothing."""
    if lively():
        with console(sys.stderr).status(clean(doing)):
            yield
    else:
        yield


def console(stream: TextIO) -> "Console":
    from rich.console import Console

    return Console(file=stream, highlight=False, markup=False, emoji=False)


def _print(lines: "Iterable[Text | str]", stream: TextIO) -> None:
    """Print a plain line without the library that knows colours: its import takes a while."""
    printer: Console | None = None
    for line in lines:
        if isinstance(line, str):
            print(clean(line), file=stream, flush=True)
        else:
            printer = printer or console(stream)
            printer.print(line, soft_wrap=True)
