"""The command `logs`: what the local stack's services and drivers have written."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from waybill.cli import render
from waybill.cli.render import Form, OutputOption
from waybill.cli.stack import local_stack
from waybill.errors import WaybillError

LINES = 100
HEAD = ("at", "level", "service", "logger", "message", "error", "expected")
NEW = re.compile(r"\{|\d\d:\d\d:\d\d")
"""How a record begins; other lines belong to the one before."""
PY4J = "py4j.clientserver"
STAGE_ENDED = "waybill_spark.driver.failures.StageFailed"
QUERY_ENDED = " ERROR MicroBatchExecution: Query "
OF_A_BATCH = ".ForeachBatchUserFuncException: "
FRAME = ("\tat ", "\t... ")


def known_names() -> list[str]:
    """For shell completion, which must not fail."""
    with suppress(Exception):
        from waybill_local.logs import find_logs

        return list(find_logs(Path.cwd()))
    return []


def logs(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="SERVICE|PIPELINE",
            help="only its log; a pipeline's is that of its Spark driver",
            autocompletion=known_names,
        ),
    ] = None,
    follow: Annotated[  # noqa: FBT002 - a flag of the command line
        bool, typer.Option("-f", "--follow", help="go on with what is written from now on")
    ] = False,
    lines: Annotated[
        int, typer.Option("-n", "--lines", min=0, metavar="N", help="of the end of each log")
    ] = LINES,
    verbose: Annotated[  # noqa: FBT002 - the same
        bool, typer.Option("--verbose", help="also where in the code an expected stop came from")
    ] = False,
    output: OutputOption = Form.TABLE,
) -> None:
    """Show what services and pipelines' drivers have written.

    Of the local stack, also of one that has ended. Without a name, all logs, each
    line behind its name. Why a pipeline was stopped is one line, as long as it is nothing
    unexpected.

    \b
    Example:
      waybill logs orders -f
      waybill logs stage_runner -n 500
      waybill logs -n 20

    Exit codes: 0 ok · 1 error, also when there is no such log · 130 Ctrl-C
    """
    with local_stack():
        from waybill_local.logs import find_logs, tail
        from waybill_local.logs import follow as read_on

        chosen = _choose(find_logs(Path.cwd()), name)
        written = ((source, line) for source, path in chosen.items() for line in tail(path, lines))
        told = chain(written, read_on(chosen) if follow else ())
        whole = verbose or output is Form.JSON
        for source, line in told if whole else _without_batches(told):
            _tell(source, line, output, named=name is None, verbose=verbose)


def _choose(found: Mapping[str, Path], name: str | None) -> Mapping[str, Path]:
    if not found:
        raise WaybillError("no stack has run in this folder or above: start one with `waybill up`")
    if name is None:
        return found
    if name not in found:
        raise WaybillError(f"there is no log of {name!r}; there are: {', '.join(found)}")
    return {name: found[name]}


def _without_batches(told: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Without what Py4J and Spark say of a batch that failed: the run tells why by itself."""
    held: dict[str, str] = {}
    left_out: dict[str, str] = {}
    """By source, its last line that was left out."""
    for source, line in told:
        head = held.pop(source, None)
        if head is not None and OF_A_BATCH in line:
            left_out[source] = line
            continue
        if head is not None:
            yield source, head
        if source in left_out and _goes_on(left_out[source], line):
            left_out[source] = line
            continue
        left_out.pop(source, None)
        if QUERY_ENDED in line:
            held[source] = line  # what follows says of which sort it is
        elif not (PY4J in line and STAGE_ENDED in line):
            yield source, line
    yield from held.items()


def _goes_on(before: str, line: str) -> bool:
    """Whether a traceback of Java does; it has any lines before its first frame."""
    if NEW.match(line):
        return False
    return not before.startswith(FRAME) or line.startswith((*FRAME, "Caused by: "))


def _tell(source: str, line: str, output: Form, *, named: bool, verbose: bool) -> None:
    if output is Form.JSON:
        render.data([json.dumps({"source": source, "line": line}, ensure_ascii=False)])
    else:
        shown = _readable(line, verbose=verbose)
        render.data([f"{source:<14} {shown}" if named else shown])


def _readable(line: str, *, verbose: bool) -> str:
    """A line of JSON as people read it: time, level, who, what, the rest as name=value."""
    if not line.startswith("{"):
        return line
    try:
        said = json.loads(line)
        head = f"{said['at'][11:19]} {said['level']:7} {said['logger']}: {said['message']}"
    except (ValueError, KeyError, TypeError):
        return line
    more = " ".join(f"{key}={value}" for key, value in said.items() if key not in HEAD)
    traced = "error" in said and (verbose or not said.get("expected"))
    error = f"\n{said['error']}" if traced else ""
    return f"{head} {more}".rstrip() + error
