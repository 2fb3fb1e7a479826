"""The commands of the local stack: `up`, `down`, `ps`, `env`.

Only shows what the package `local_stack` does; without that package it says how to install it.
"""

import os
import shlex
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from waybill.cli import render
from waybill.cli.exits import ExitCode
from waybill.cli.render import Form, OutputOption
from waybill.cli.reports import Reports
from waybill.cli.services import read_services
from waybill.cli.session import ASK_TIMEOUT_S, direct
from waybill.errors import WaybillError
from waybill.target import Target, find_target

if TYPE_CHECKING:
    from waybill_local.reports import Report
    from waybill_local.state import StackState

DetachOption = Annotated[
    bool, typer.Option("--detach", "-d", help="return when it is ready, and leave it running")
]


class Extra(StrEnum):
    """A server that a local stack may have in addition."""

    POSTGRES = "postgres"


WithOption = Annotated[
    list[Extra] | None,
    typer.Option(
        "--with",
        case_sensitive=False,
        help="also a PostgreSQL, as connection `warehouse`; from then on it is part of the stack",
    ),
]
NO_STACK = "no stack runs in this folder or above: start one with `waybill up`"
HEADER = ("NAME", "STATE", "ADDRESS", "VERSION", "PID")
SERVICE_HEADER = ("NAME", "STATE", "VERSION")


def up(
    detach: DetachOption = False,  # noqa: FBT002 - a flag of the command line
    extras: WithOption = None,
    output: OutputOption = Form.TABLE,
) -> None:
    """Start the local stack of this folder: Kafka, Valkey and the services.

    It listens on 127.0.0.1 only and keeps everything in ./.waybill; a port that is in use is
    replaced by a free one. Without --detach it runs until Ctrl-C. A stack that runs already is only
    shown.

    \b
    Example:
      waybill up --detach
      eval "$(waybill env)"
      waybill up --detach --with postgres

    Exit codes: 0 it runs, or ran until Ctrl-C · 1 error · 2 usage · 130 Ctrl-C before it was ready
    """
    folder = Path.cwd()
    with local_stack():
        from waybill_local.state import AlreadyRunning, StackPhase, read_state

        running = read_state(folder)
        try:
            if running is None:
                _start(folder, detach, output, extras or [])
        except AlreadyRunning as found:
            running = found.state
            if running is None:
                raise WaybillError(
                    "a stack of this folder is just starting: see `waybill ps`"
                ) from found
        if running is not None:
            if running.phase is StackPhase.STOPPING:
                raise WaybillError("the stack of this folder is just stopping: try again")
            missing = [extra for extra in extras or [] if extra not in running.ports]
            if missing:
                raise WaybillError(
                    f"the stack of this folder runs without {missing[0]}: stop it with"
                    f" `waybill down`, then `waybill up --with {missing[0]}`"
                )
            render.talk("already running")
            _print(running, output)


def down() -> None:
    """Stop the local stack of this folder, or of the nearest one above.

    No process is left running; what is in ./.waybill stays for the next `waybill up`.

    \b
    Example:
      waybill down

    Exit codes: 0 stopped, or none ran · 1 error
    """
    with local_stack(), Reports("stopping") as reports:
        from waybill_local.stack import down as stop

        stopped = stop(Path.cwd(), reports.show)
    if not stopped:
        render.talk("no stack runs in this folder or above")


def ps(output: OutputOption = Form.TABLE) -> None:
    """List the processes of the running local stack, and its addresses.

    With --url, WAYBILL_URL or a context that names another Waybill, its services, as they answer.

    \b
    Example:
      waybill ps
      waybill ps -o json | jq -r .url
      waybill ps --url https://waybill.example

    Exit codes: 0 it runs · 1 none runs, or another error
    """
    target = find_target(None, os.environ, Path.cwd())
    if target.chosen and not _is_of_this_folder(target):
        _show_services(target, output)
    else:
        with local_stack():
            _print(_running_state(), output)


def env(output: OutputOption = Form.TABLE) -> None:
    """Print the addresses of the running local stack as lines for a shell.

    \b
    Example:
      eval "$(waybill env)"
      curl "$WAYBILL_URL/v1/pipelines"

    Exit codes: 0 it runs · 1 none runs, or another error
    """
    with local_stack():
        state = _running_state()
    values = {"WAYBILL_URL": state.url, "WAYBILL_KAFKA": state.kafka, "WAYBILL_REDIS": state.redis}
    if output is Form.JSON:
        render.as_json(values)
    else:
        render.data(f"export {name}={shlex.quote(value)}" for name, value in values.items())


def _is_of_this_folder(target: Target) -> bool:
    """Return True if the stack of this folder, or of one above, runs at that address."""
    if find_spec("waybill_local") is None:
        return False
    from waybill_local.state import read_state

    state = read_state(Path.cwd())
    return state is not None and target.url.replace("//localhost", "//127.0.0.1") == state.url


def _show_services(target: Target, output: Form) -> None:
    """Show the services of a Waybill, wherever their processes are."""
    with closing(direct(ASK_TIMEOUT_S)) as connection:
        services = read_services(connection)
    if output is Form.JSON:
        render.as_json({"url": target.url, "processes": [asdict(each) for each in services]})
        return
    lines = [(each.name, each.state, each.version or "") for each in services]
    addresses = [("", "url", target.url), ("", "console", f"{target.url}/")]
    render.data([
        *render.table(lines, header=SERVICE_HEADER), "", *render.table(addresses)
    ])  # fmt: skip
    render.talk(f"it is the Waybill {target.source}; to the stack of this folder: --context local")


def _start(folder: Path, detach: bool, output: Form, extras: list[Extra]) -> None:
    from waybill_local import stack
    from waybill_local.reports import STACK, ReportKind

    options = stack.Options(postgres=Extra.POSTGRES in extras)
    render.talk(f"local stack in {folder / '.waybill'}")
    with Reports("starting") as reports:
        if detach:
            state = stack.up(folder, reports.show, options=options)
            reports.settle()
            _print(state, output)
            return

        def show(report: "Report") -> None:
            reports.show(report)
            if report.name == STACK and report.kind is ReportKind.READY:
                reports.settle()
                _print(_running_state(), output)
                render.talk("Ctrl-C stops it")

        try:
            stack.run(folder, options, show)
        except KeyboardInterrupt:
            render.talk("stopped before it was ready; nothing of it is left running")
            raise


def _running_state() -> "StackState":
    from waybill_local.state import last_failure, read_state

    state = read_state(Path.cwd())
    if state is None:
        failure = last_failure(Path.cwd())
        last = f"\nthe last one ended by itself: {failure}" if failure else ""
        raise WaybillError(f"{NO_STACK}{last}")
    return state


@contextmanager
def local_stack() -> Iterator[None]:
    """Check that the package is there, and print its errors in their three parts."""
    if find_spec("waybill_local") is None:
        raise WaybillError("the local stack is not installed: pip install 'waybill-client[local]'")
    from waybill_local.errors import StackError

    try:
        yield
    except StackError as error:
        render.complain(
            render.words("error:", error.what), f"  why: {error.why}", f"  fix: {error.fix}"
        )
        raise typer.Exit(ExitCode.ERROR) from error


def _postgres(state: "StackState") -> list[tuple[str, str, str]]:
    server = state.postgres
    if server is None:
        return []
    words = f"{server.place}, connection {server.connection}, password in {server.password_file}"
    return [("", "postgres", words)]


def _print(state: "StackState", output: Form) -> None:
    from waybill_local.drivers import count_drivers

    if output is Form.JSON:
        render.as_json(_as_json(state))
        return
    processes = [
        (each.name, each.state.value, each.address, each.version, str(each.pid))
        for each in state.processes
    ]
    addresses = [
        ("", "url", state.url),
        ("", "console", f"{state.url}/"),
        ("", "docs", f"{state.url}/docs"),
        ("", "kafka", state.kafka),
        ("", "redis", state.redis),
        *(_postgres(state)),
        ("", "drivers", f"{count_drivers(state.folder)}"),
        ("", "data", f"kept in {state.folder}"),
    ]
    render.data([*render.table(processes, header=HEADER), "", *render.table(addresses)])


def _as_json(state: "StackState") -> dict[str, object]:
    from waybill_local.drivers import count_drivers

    return {
        "phase": state.phase.value,
        "url": state.url,
        "kafka": state.kafka,
        "redis": state.redis,
        "folder": str(state.folder),
        "drivers": asdict(count_drivers(state.folder)),
        "processes": [
            {
                "name": each.name,
                "state": each.state.value,
                "address": each.address,
                "version": each.version,
                "pid": each.pid,
            }
            for each in state.processes
        ],
    }
