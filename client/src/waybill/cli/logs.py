"""The command `logs`: what the local stack's services and drivers have written."""

import json
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from waybill.cli import render
from waybill.cli.render import Form, OutputOption
from waybill.cli.session import connect
from waybill.cli.stack import NO_STACK, local_stack
from waybill.errors import WaybillError

LINES = 100
LINES_MAX = 1_000  # of a log that is asked for
HEAD = ("at", "level", "service", "logger", "message", "error", "expected")
NEW = re.compile(r"\{|\d\d:\d\d:\d\d")
"""How a record begins; other lines belong to the one before."""
PY4J = "py4j.clientserver"
STAGE_ENDED = "waybill_spark.driver.failures.StageFailed"
QUERY_ENDED = " ERROR MicroBatchExecution: Query "
OF_A_BATCH = ".ForeachBatchUserFuncException: "
FRAME = ("\tat ", "\t... ")


def list_names() -> list[str]:
    """Return the names for shell completion, which must not fail."""
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
            autocompletion=list_names,
        ),
    ] = None,
    follow: Annotated[  # noqa: FBT002 - a flag of the command line
        bool, typer.Option("-f", "--follow", help="go on with what is written from now on")
    ] = False,
    lines: Annotated[
        int,
        typer.Option("-n", "--lines", min=0, metavar="N", help="of the end of each log, as shown"),
    ] = LINES,
    verbose: Annotated[  # noqa: FBT002 - the same
        bool, typer.Option("--verbose", help="also the traceback of an expected stop")
    ] = False,
    output: OutputOption = Form.TABLE,
) -> None:
    """Show what services and pipelines' drivers have written.

    Those of the local stack, also of one that has ended. Without a name, it shows all logs, and
    each line starts with the name of its log. Where there is no local stack, the log of a pipeline
    is read from WAYBILL_URL. Why a pipeline was stopped is one line, as long as it is nothing
    unexpected.

    \b
    Example:
      waybill logs orders -f
      waybill logs stage_runner -n 500
      waybill logs -n 20

    Exit codes: 0 ok · 1 error, also when there is no such log · 130 Ctrl-C
    """

    def show(source: str, line: str) -> None:
        _print(source, line, output, named=name is None, verbose=verbose)

    whole = verbose or output is Form.JSON
    if name is not None and not follow and not list_names():
        fold = FoldedLog(whole=whole)
        for line in fold.take_all(_read_remote(name, lines), more=False):
            show(name, line)
        return
    with local_stack():
        from waybill_local.logs import find_logs, read
        from waybill_local.logs import follow as read_on

        chosen = _choose(find_logs(Path.cwd()), name)
        folds = {source: FoldedLog(whole=whole) for source in chosen}

        for source, path in chosen.items():
            fold = folds[source]
            for line in deque(fold.take_all(read(path), more=follow), maxlen=lines):
                show(source, line)
        for source, line in read_on(chosen) if follow else ():
            for shown in folds[source].take(line):
                show(source, shown)


def _read_remote(name: str, lines: int) -> tuple[str, ...]:
    with connect() as client:
        return client.logs(name, min(max(lines, 1), LINES_MAX))


def _choose(found: Mapping[str, Path], name: str | None) -> Mapping[str, Path]:
    if not found:
        elsewhere = "; without -f the newest lines are read from WAYBILL_URL" if name else ""
        raise WaybillError(NO_STACK + elsewhere)
    if name is None:
        return found
    if name not in found:
        raise WaybillError(f"there is no log of {name!r}; there are: {', '.join(found)}")
    return {name: found[name]}


class FoldedLog:
    """A log without what Py4J and Spark write of a batch that failed: the run logs the reason
    itself."""

    def __init__(self, *, whole: bool) -> None:
        self._whole = whole
        self._pending: str | None = None
        self._left_out: str | None = None
        """The last line, if it was left out."""

    def take_all(self, lines: Iterable[str], *, more: bool) -> Iterator[str]:
        """Yield what is left of `lines`.

        With `more`, other lines follow, which decide whether the last one is left out.
        """
        for line in lines:
            yield from self.take(line)
        if self._pending is not None and not more:
            yield self._pending

    def take(self, line: str) -> Iterator[str]:
        if self._whole:
            yield line
            return
        head, self._pending = self._pending, None
        if head is not None and OF_A_BATCH in line:
            self._left_out = line
            return
        if head is not None:
            yield head
        if self._left_out is not None and _goes_on(self._left_out, line):
            self._left_out = line
            return
        self._left_out = None
        if QUERY_ENDED in line:
            self._pending = line  # what follows says of which sort it is
        elif not (PY4J in line and STAGE_ENDED in line):
            yield line


def _goes_on(before: str, line: str) -> bool:
    """Return True if `line` continues a Java traceback, which has any lines before its first
    frame."""
    if NEW.match(line):
        return False
    return not before.startswith(FRAME) or line.startswith((*FRAME, "Caused by: "))


def _print(source: str, line: str, output: Form, *, named: bool, verbose: bool) -> None:
    if output is Form.JSON:
        render.data([json.dumps({"source": source, "line": line}, ensure_ascii=False)])
    else:
        shown = _readable(line, verbose=verbose)
        render.data([f"{source:<14} {shown}" if named else shown])


def _readable(line: str, *, verbose: bool) -> str:
    """Return a line of JSON as people read it: time, level, who, what, the rest as name=value."""
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
