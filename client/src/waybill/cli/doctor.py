"""The command `doctor`: asks this machine and the configured Waybill what may be wrong.

Starts nothing and changes nothing.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from waybill.cli import render
from waybill.cli.exits import ExitCode
from waybill.cli.render import Form, OutputOption
from waybill.cli.services import read_checks
from waybill.cli.session import ASK_TIMEOUT_S, direct
from waybill.errors import Unreachable, WaybillError
from waybill.questions import Question
from waybill.version import client_version

if TYPE_CHECKING:
    from waybill.fields import Fields
    from waybill.sync.connection import Connection
    from waybill_local.checks import CheckResult

NAME_WIDTH = 22


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The answer to one question; `fix` says what to do where it is not ok."""

    name: str
    verdict: Literal["ok", "warn", "wrong"]
    text: str
    fix: str = ""


def doctor(output: OutputOption = Form.TABLE) -> None:
    """Find out what is wrong, and what to do about it.

    Asks this machine, the local stack and the Waybill in use; starts nothing. Each line says ok,
    warn or wrong; the line below a warning or a fault says what to do.

    \b
    Example:
      waybill doctor
      waybill doctor -o json | jq '.checks[] | select(.verdict != "ok")'

    Exit codes: 0 nothing is wrong (there may be warnings) · 1 something is
    """
    findings: list[Finding] = []
    for finding in _look_busily(_findings(Path.cwd())):
        findings.append(finding)
        if output is Form.TABLE:
            _print(finding)
    healthy = all(finding.verdict != "wrong" for finding in findings)
    if output is Form.JSON:
        render.as_json({"healthy": healthy, "checks": [asdict(finding) for finding in findings]})
    raise typer.Exit(ExitCode.OK if healthy else ExitCode.ERROR)


def _look_busily(findings: Iterator[Finding]) -> Iterator[Finding]:
    """Yield the findings; show a spinner while each is looked for.

    There is none while a finding is printed: a spinner redirects stdout, too.
    """
    while True:
        with render.busy("looking"):
            finding = next(findings, None)
        if finding is None:
            return
        yield finding


def _findings(folder: Path) -> Iterator[Finding]:
    if find_spec("waybill_local") is None:
        text = "not installed, so only the Waybill in use is asked"
        yield Finding(name="local stack", verdict="ok", text=text)
    else:
        from waybill_local.checks import check_machine

        yield from map(_of_machine, check_machine(folder))
    yield from check_waybill()


def _of_machine(check: "CheckResult") -> Finding:
    return Finding(name=check.name, verdict=check.verdict.value, text=check.text, fix=check.fix)


def check_waybill() -> Iterator[Finding]:
    """Yield whether the Waybill in use answers, is of this client's version, and is ready."""
    try:
        connection = direct(ASK_TIMEOUT_S)
        target = connection.line.target
    except WaybillError as error:
        yield Finding(name="waybill", verdict="wrong", text=str(error), fix="see above")
        return
    place = f"{target.url} ({target.source})"
    try:
        answer = connection.ask(Question(method="GET", path="/version"))
        yield _of_version(place, answer)
        yield from _of_services(connection)
    except Unreachable as error:
        fix = "start the local stack with `waybill up`, or set WAYBILL_URL"
        if target.chosen:
            yield Finding(name="waybill", verdict="wrong", text=str(error), fix=fix)
        else:
            yield Finding(name="waybill", verdict="warn", text=f"none runs at {place}", fix=fix)
    except WaybillError as error:
        fix = "see that WAYBILL_URL names a Waybill, with no other server in between"
        yield Finding(name="waybill", verdict="wrong", text=str(error), fix=fix)
    finally:
        connection.close()


def _of_version(place: str, answer: "Fields") -> Finding:
    theirs, ours = answer.text("version"), client_version()
    if theirs == ours:
        return Finding(name="waybill", verdict="ok", text=f"{theirs} at {place}")
    text = f"{theirs} at {place}, but this client is {ours}"
    return Finding(name="waybill", verdict="warn", text=text, fix="use the client of that version")


def _of_services(connection: "Connection") -> Iterator[Finding]:
    for service, missing in read_checks(connection).items():
        name = f"service {service}"
        if not missing:
            yield Finding(name=name, verdict="ok", text="ready")
        else:
            fix = f"see `waybill logs {service}`"
            yield Finding(name=name, verdict="wrong", text="; ".join(missing), fix=fix)


def _print(finding: Finding) -> None:
    blanks = " " * (len("wrong") - len(finding.verdict))
    render.data(
        [render.words(finding.verdict, f"{blanks}{finding.name:<{NAME_WIDTH}}", finding.text)]
    )
    if finding.fix:
        render.data([render.words(" " * (len("wrong") + NAME_WIDTH + 1), "fix:", finding.fix)])
