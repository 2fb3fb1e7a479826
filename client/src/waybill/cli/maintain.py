"""The command `maintain`: runs the maintenance of a sink's table at once."""

from collections.abc import Mapping
from typing import Annotated

import typer

from waybill.cli import render
from waybill.cli.exits import ExitCode
from waybill.cli.faults import exit_on_faults, print_faults
from waybill.cli.render import Form, OutputOption
from waybill.cli.session import PipelineArgument, TimeoutOption, connect
from waybill.models import Operation

WAIT_S = 600.0  # a table may be large
FIRST_WAIT_S = 10.0  # of the first request
SinkArgument = Annotated[str, typer.Argument(metavar="SINK", help="the name of the sink")]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="only say what would be done: nothing is changed")
]


def maintain(
    name: PipelineArgument,
    sink: SinkArgument,
    dry_run: DryRunOption = False,  # noqa: FBT002 - a flag of the command line
    timeout: TimeoutOption = WAIT_S,
    output: OutputOption = Form.TABLE,
) -> None:
    """Maintain the Iceberg table of a sink, at once.

    Runs every task that the manifest names under `maintenance`, due or not: it unites small files,
    rewrites manifests, expires snapshots and removes orphans. The pipeline may run or be stopped.
    What takes longer than --timeout goes on; `waybill wait OPERATION` then waits for it.

    \b
    Example:
      waybill maintain orders lake --dry-run

    \b
    Exit codes: 0 done · 1 error · 2 usage · 4 not done in time
    """
    doing = f"keeping the table of {sink} in order"
    with exit_on_faults(name), connect() as client, render.busy(doing):
        first_wait_s = min(FIRST_WAIT_S, timeout)
        operation = client.maintain(name, sink, dry_run=dry_run, wait_s=first_wait_s)
        if operation.pending:
            operation = client.operation(operation.id, wait_s=timeout)
    print_maintenance(operation, output)


def print_maintenance(operation: Operation, output: Form) -> None:
    """Print what was done, in numbers; end with an error if it was not done."""
    if output is Form.JSON:
        render.as_json(operation.raw)
    if operation.failed:
        print_faults(operation.errors, operation.pipeline)
        raise typer.Exit(ExitCode.ERROR)
    if operation.pending:
        render.complain(f"it goes on: waybill wait {operation.id}")
        raise typer.Exit(ExitCode.IN_PROGRESS)
    if output is not Form.JSON:
        render.data(_lines(operation))


def _lines(operation: Operation) -> list[str]:
    result = operation.result or {}
    tasks = result.get("tasks")
    would = " would do" if result.get("dry_run") else ""
    return [
        f"{task}{would}: {_numbers(counts)}"
        for task, counts in (tasks.items() if isinstance(tasks, dict) else ())
    ]


def _numbers(counts: Mapping[str, int]) -> str:
    """Return what a task counts, as in `12 files, into 1`."""
    return ", ".join(
        f"into {count}" if what == "into" else f"{count} {what}" for what, count in counts.items()
    )
