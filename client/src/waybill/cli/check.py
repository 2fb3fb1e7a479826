"""The command check: what is wrong with a manifest, before anything is made of it."""

from typing import Annotated

import typer

from waybill.cli import render
from waybill.cli.exits import ExitCode
from waybill.cli.faults import exit_on_faults
from waybill.cli.manifest_files import ManifestOption, name_of, read_manifest
from waybill.cli.render import Form, OutputOption
from waybill.cli.session import TimeoutOption, connect
from waybill.findings import CheckedStage, Findings

CHECK_WAIT_S = 60.0  # a driver that is not warm yet compiles SQL in some twenty seconds
GraphOption = Annotated[
    bool, typer.Option("--graph", help="also print the stages, with the columns of their sinks")
]


def check(
    file: ManifestOption,
    graph: GraphOption = False,  # noqa: FBT002 - a flag of the command line
    timeout: TimeoutOption = CHECK_WAIT_S,
    output: OutputOption = Form.TABLE,
) -> None:
    """Check a manifest as apply does; nothing is created or changed.

    Prints all that is wrong at once, as file:line:column with a hint: also what only Spark finds in
    its SQL, and columns that a sink's table does not accept.

    \b
    Example:
      waybill check -f examples/orders.yaml --graph

    \b
    Exit codes: 0 apply would accept it · 1 errors · 2 usage · 4 not checked in time
    """
    text, name = read_manifest(file), name_of(file)
    with exit_on_faults(name), connect() as client, render.busy(f"checking {name}"):
        found = client.check(text, timeout_s=timeout)
    print_findings(found, name, output, graph=graph)


def print_findings(found: Findings, name: str, output: Form, *, graph: bool = False) -> None:
    """Print the findings, and end with an error if the manifest is wrong."""
    if output is Form.JSON:
        render.as_json(found.raw)
    else:
        _print(found, name, graph=graph)
    if not found.good:
        raise typer.Exit(ExitCode.ERROR)


def _print(found: Findings, name: str, *, graph: bool) -> None:
    render.data(render.fault_text(fault, name) for fault in found.errors)
    render.data(f"{name}: warning: {warning}" for warning in found.warnings)
    if graph:
        render.data(line for stage in found.stages for line in _lines(stage))
    if found.good:
        render.talk(render.words(name, "is", "ok"))


def _lines(stage: CheckedStage) -> list[str]:
    sinks = [
        f"  {sink}: {stage.columns[sink]}" if sink in stage.columns else f"  {sink}"
        for sink in stage.sinks
    ]
    return [f"{stage.name} reads {', '.join(stage.inputs)}, writes", *sinks]
