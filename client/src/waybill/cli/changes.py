"""The commands that change pipelines: apply, start, stop, restart, delete."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from waybill.cli import render
from waybill.cli.check import tell_findings
from waybill.cli.diff import ask_first, is_known, show
from waybill.cli.exits import ExitCode
from waybill.cli.manifest_files import ManifestOption, name_of, read_manifest
from waybill.cli.phase_view import DRIVER_WAIT_S, showing_phase
from waybill.cli.phases import PipelinePhase
from waybill.cli.render import Form, OutputOption
from waybill.cli.session import PipelineArgument, TimeoutOption, connect, connect_to_change
from waybill.errors import NotFound, ProblemError, WaybillError
from waybill.findings import found_in
from waybill.models import Fault, Operation, StartFrom

if TYPE_CHECKING:
    from waybill.client import Client

CHECK = "validate"  # as operations call it
WaitOption = Annotated[
    bool, typer.Option("--wait", help="end with 4 when it is not done in this time")
]


DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="say what would change, as waybill diff, and do nothing")
]
YesOption = Annotated[
    bool,
    typer.Option("--yes", "-y", help="do not ask before rows are written again or tokens end lost"),
]


def apply(  # noqa: PLR0917 - options of a command line
    file: ManifestOption,
    dry_run: DryRunOption = False,  # noqa: FBT002 - a flag of the command line
    yes: YesOption = False,  # noqa: FBT002 - as dry_run
    wait: WaitOption = False,  # noqa: FBT002 - a flag of the command line
    timeout: TimeoutOption = DRIVER_WAIT_S,
    output: OutputOption = Form.TABLE,
) -> None:
    """Create or change a pipeline from a manifest, and start it.

    Waits until it runs. If that takes longer than --timeout, a new pipeline is told as accepted,
    and goes on. A change of one that exists ends with 4 then, because `waybill wait PIPELINE` would
    find the old one running. In both cases the command that follows it is told. What is wrong is
    told as file:line:column with a hint, also what only Spark finds (in SQL, in a sink's table). A
    manifest that is refused changes nothing.

    Says on stderr what a change of a pipeline that exists does, after a check of up to a minute.
    Where that writes rows again, or lets tokens end lost, it asks first; without a terminal it
    refuses, unless --yes is given. If the check cannot be made, --yes is needed too.

    \b
    Example:
      waybill apply -f examples/orders.yaml && waybill wait orders

    \b
    Exit codes: 0 applied, or accepted · 1 error, or answered with no · 2 usage, or --yes is
      needed · 4 not done in time: with --wait, or the pipeline exists already
    """
    text, name = read_manifest(file), name_of(file)
    if dry_run:
        with connect() as client:
            show(client, text, name, output)
        return

    try:
        with connect_to_change() as client:
            known = is_known(client, text)
            ask_first(client, text, name, output, yes=yes)
            operation = _settle(client, client.apply(text), timeout, output)
        _tell(operation, timeout, output, name, must_end=wait or known)
    except ProblemError as problem:
        if not problem.errors:
            raise
        _tell_faults(problem.errors, name)
        raise typer.Exit(ExitCode.ERROR) from problem


def start(
    name: PipelineArgument,
    wait: WaitOption = False,  # noqa: FBT002 - a flag of the command line
    timeout: TimeoutOption = DRIVER_WAIT_S,
    output: OutputOption = Form.TABLE,
) -> None:
    """Start a stopped pipeline; it goes on where it stopped.

    Waits until it runs. If that takes longer than --timeout, it is told as accepted and goes on.

    \b
    Example:
      waybill start orders && waybill wait orders

    Exit codes: 0 it runs, or accepted · 1 error · 4 with --wait: not done in time
    """
    _change(lambda client: client.start(name), timeout, output, must_end=wait)


def stop(
    name: PipelineArgument,
    timeout: TimeoutOption = DRIVER_WAIT_S,
    output: OutputOption = Form.TABLE,
) -> None:
    """Stop a pipeline after its running batch; tokens stay answerable.

    \b
    Example:
      waybill stop orders && waybill wait orders --for Stopped

    Exit codes: 0 stopped · 1 error · 4 not done in time
    """
    _change(lambda client: client.stop(name), timeout, output)


def restart(
    name: PipelineArgument,
    start_from: Annotated[
        StartFrom | None,
        typer.Option(
            "--from", case_sensitive=False, help="where to begin in topics that were created anew"
        ),
    ] = None,
    wait: WaitOption = False,  # noqa: FBT002 - a flag of the command line
    timeout: TimeoutOption = DRIVER_WAIT_S,
    output: OutputOption = Form.TABLE,
) -> None:
    """Restart a pipeline, also one that is stopped or failed; it goes on where its sinks stand.

    After a topic was deleted and created again, --from says where to begin in the new one. What
    was not processed of the old one ends as lost; what was written is not written again.

    \b
    Example:
      waybill restart orders
      waybill restart orders --from earliest

    \b
    Exit codes: 0 it runs with a new driver, or accepted · 1 error · 2 usage ·
      4 not done in time: with --wait, or the old driver still runs
    """
    _change(lambda client: client.restart(name, start_from), timeout, output, must_end=wait)


def delete(
    name: PipelineArgument,
    timeout: TimeoutOption = DRIVER_WAIT_S,
    output: OutputOption = Form.TABLE,
) -> None:
    """Delete a pipeline; its topics and tables stay.

    Tokens that are not complete by then end as lost.

    \b
    Example:
      waybill delete orders

    Exit codes: 0 deleted · 1 error · 4 not done in time
    """
    _change(lambda client: client.delete(name), timeout, output)


def _change(
    ask: "Callable[[Client], Operation]",
    timeout: float,
    output: Form,
    *,
    must_end: bool = True,
) -> None:
    with connect_to_change() as client:
        operation = _settle(client, ask(client), timeout, output)
        must_end = must_end or (operation.pending and _runs(client, operation.pipeline))
    _tell(operation, timeout, output, must_end=must_end)


def follow(id: str, timeout: float, output: Form) -> None:
    """What was asked for earlier, until it is done; ends as the command that asked for it."""
    pipeline = id.split(".")[1]
    with connect() as client, showing_phase(pipeline, f"waiting for {id}", output):
        operation = client.operation(id, wait_s=timeout)
    if operation.action == CHECK and not operation.pending:
        tell_findings(found_in(operation), pipeline, output)
    else:
        _tell(operation, timeout, output)


def _tell(
    operation: Operation,
    timeout: float,
    output: Form,
    file: str | None = None,
    *,
    must_end: bool = True,
) -> None:
    _tell_operation(operation, file or operation.pipeline, output)
    _tell_pending(operation, timeout, output, must_end=must_end)


def _runs(client: "Client", name: str) -> bool:
    """Or may run: then `waybill wait` ends at once, whatever becomes of the change."""
    try:
        return client.pipeline(name).phase == PipelinePhase.RUNNING
    except NotFound:
        return False
    except WaybillError:
        return True


def _settle(client: "Client", operation: Operation, timeout: float, output: Form) -> Operation:
    if not operation.pending:
        return operation
    doing = f"{operation.action} {operation.pipeline}"
    with showing_phase(operation.pipeline, doing, output):
        return client.operation(operation.id, wait_s=timeout)


def _tell_operation(operation: Operation, file: str, output: Form) -> None:
    if output is Form.JSON:
        render.as_json(operation.raw)
    for warning in operation.warnings:
        render.complain(f"warning: {warning}")
    _tell_faults(operation.errors, file)
    if operation.failed:
        render.complain(
            render.words("error:", f"{operation.action} {operation.pipeline}", "failed")
        )
        raise typer.Exit(ExitCode.ERROR)
    if output is Form.TABLE and not operation.pending:
        told = [operation.pipeline, operation.action, operation.state]
        if operation.generation is not None:
            told.append(f"generation {operation.generation}")
        render.data([render.words(*told)])


def _tell_pending(operation: Operation, timeout: float, output: Form, *, must_end: bool) -> None:
    if not operation.pending:
        return
    asked, follows = f"{operation.action} {operation.pipeline}", f"`waybill wait {operation.id}`"
    if must_end:
        render.complain(
            f"{asked} is not done after {timeout:g} s: it goes on, and {follows} follows it",
            f"hint: `waybill describe {operation.pipeline}` says what it waits for",
        )
        raise typer.Exit(ExitCode.IN_PROGRESS)
    if output is Form.TABLE:
        told = f"is accepted, but not done after {timeout:g} s: {follows} follows it"
        render.data([f"{asked} {told}"])


def _tell_faults(faults: tuple[Fault, ...], file: str) -> None:
    render.complain(*(render.fault_text(fault, file) for fault in faults))
