"""The commands about pipelines: apply, get, describe, start, stop, restart, delete, wait."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from waybill.cli import render
from waybill.cli.describe import describe_lines
from waybill.cli.exits import ExitCode
from waybill.cli.lag import lag_of
from waybill.cli.manifest_files import ManifestOption, name_of, read_manifest
from waybill.cli.phases import Phase
from waybill.cli.render import Form, OutputOption
from waybill.cli.session import PipelineArgument, connect
from waybill.errors import ProblemError
from waybill.models import Fault, Operation, StartFrom
from waybill.pipelines import Pipeline

if TYPE_CHECKING:
    from waybill.client import Client

OPERATION_WAIT_S = 120.0  # on a busy machine a first driver takes most of it
HEADER = ("NAME", "PHASE", "DESIRED", "GENERATION", "SINCE", "REASON")


def apply(
    file: ManifestOption,
    output: OutputOption = Form.TABLE,
) -> None:
    """Create or change a pipeline from a manifest, and start it.

    Waits up to 30 s. What is wrong is told as file:line:column with a hint, also what only Spark
    finds (in SQL, in a sink's table). A manifest that is refused changes nothing.

    \b
    Example:
      waybill apply -f examples/orders.yaml && waybill wait orders

    \b
    Exit codes: 0 applied · 1 error · 2 usage · 4 not done after 30 s
    """
    text, name = read_manifest(file), name_of(file)
    try:
        with connect() as client:
            operation = _settle(client, client.apply(text))
    except ProblemError as problem:
        if not problem.errors:
            raise
        _tell_faults(problem.errors, name)
        raise typer.Exit(ExitCode.ERROR) from problem
    _tell_operation(operation, name, output)


def get(
    name: Annotated[str | None, typer.Argument(metavar="PIPELINE", help="only this one")] = None,
    output: OutputOption = Form.TABLE,
) -> None:
    """List the pipelines, or show one.

    \b
    Example:
      waybill get
      waybill get orders -o json | jq .phase

    Exit codes: 0 ok · 1 error, also when there is no such pipeline
    """
    with connect() as client:
        found = client.pipelines() if name is None else (client.pipeline(name),)
    if output is Form.JSON:
        items = [pipeline.raw for pipeline in found]
        render.as_json({"items": items} if name is None else items[0])
    elif not found:
        render.talk("no pipelines yet: create one with `waybill apply -f FILE`")
    else:
        render.data(render.table([_row(pipeline) for pipeline in found], header=HEADER))


def describe(name: PipelineArgument, output: OutputOption = Form.TABLE) -> None:
    """Show all there is to know of a pipeline.

    What it waits for or fails of, its inputs, stages and sinks, how far each of them is behind, its
    last batches and its manifest.

    \b
    Example:
      waybill describe orders

    Exit codes: 0 ok · 1 error, also when there is no such pipeline
    """
    with connect() as client:
        pipeline = client.pipeline(name)
    if output is Form.JSON:
        render.as_json(pipeline.raw)
    else:
        render.data(describe_lines(pipeline, lag_of(name)))


def start(name: PipelineArgument, output: OutputOption = Form.TABLE) -> None:
    """Start a stopped pipeline; it goes on where it stopped.

    \b
    Example:
      waybill start orders && waybill wait orders

    Exit codes: 0 asked for and accepted · 1 error · 4 not done after 30 s
    """
    _change(lambda client: client.start(name), output)


def stop(name: PipelineArgument, output: OutputOption = Form.TABLE) -> None:
    """Stop a pipeline after its running batch; tokens stay answerable.

    \b
    Example:
      waybill stop orders && waybill wait orders --for Stopped

    Exit codes: 0 asked for and accepted · 1 error · 4 not done after 30 s
    """
    _change(lambda client: client.stop(name), output)


def restart(
    name: PipelineArgument,
    start_from: Annotated[
        StartFrom | None,
        typer.Option(
            "--from", case_sensitive=False, help="where to begin in topics that were created anew"
        ),
    ] = None,
    output: OutputOption = Form.TABLE,
) -> None:
    """Restart a pipeline, also one that is stopped or failed; it goes on where its sinks stand.

    After a topic was deleted and created again, --from says where to begin in the new one. What
    was not processed of the old one ends as lost; what was written is not written again.

    \b
    Example:
      waybill restart orders
      waybill restart orders --from earliest

    Exit codes: 0 it runs with a new driver · 1 error · 2 usage · 4 not done after 30 s
    """
    _change(lambda client: client.restart(name, start_from), output)


def delete(name: PipelineArgument, output: OutputOption = Form.TABLE) -> None:
    """Delete a pipeline; its topics and tables stay.

    Tokens that are not complete by then end as lost.

    \b
    Example:
      waybill delete orders

    Exit codes: 0 deleted · 1 error · 4 not done after 30 s
    """
    _change(lambda client: client.delete(name), output)


def wait(
    name: PipelineArgument,
    phase: Annotated[
        Phase, typer.Option("--for", case_sensitive=False, help="the phase to wait for")
    ] = Phase.RUNNING,
    timeout: Annotated[
        float, typer.Option("--timeout", min=0.0, metavar="SECONDS", help="at most so long")
    ] = 60.0,
    output: OutputOption = Form.TABLE,
) -> None:
    """Wait until a pipeline is Running, or in another phase.

    \b
    Example:
      waybill wait orders
      waybill wait orders --for Stopped --timeout 30

    \b
    Exit codes: 0 it is in the phase · 1 error, also when it came to Failed instead ·
      4 in another phase when the time was over
    """
    with connect() as client, render.busy(f"waiting for {name} to be {phase}"):
        pipeline = client.wait_pipeline(name, phase, timeout)
    if output is Form.JSON:
        render.as_json(pipeline.raw)
    else:
        render.data([render.words(pipeline.name, pipeline.phase)])


def _change(ask: "Callable[[Client], Operation]", output: Form) -> None:
    with connect() as client:
        operation = _settle(client, ask(client))
    _tell_operation(operation, operation.pipeline, output)


def _settle(client: "Client", operation: Operation) -> Operation:
    if not operation.pending:
        return operation
    with render.busy(f"{operation.action} {operation.pipeline}"):
        return client.operation(operation.id, wait_s=OPERATION_WAIT_S)


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
    if operation.pending:
        render.complain(
            f"{operation.action} {operation.pipeline} is not done after 30 s: it goes on",
            f"hint: `waybill describe {operation.pipeline}` says what it waits for",
        )
        raise typer.Exit(ExitCode.IN_PROGRESS)
    if output is Form.TABLE:
        told = [operation.pipeline, operation.action, operation.state]
        if operation.generation is not None:
            told.append(f"generation {operation.generation}")
        render.data([render.words(*told)])


def _tell_faults(faults: tuple[Fault, ...], file: str) -> None:
    render.complain(*(render.fault_text(fault, file) for fault in faults))


def _row(pipeline: Pipeline) -> tuple[str, ...]:
    return (
        pipeline.name,
        pipeline.phase,
        pipeline.desired or "",
        "" if pipeline.generation is None else str(pipeline.generation),
        "" if pipeline.since is None else pipeline.since.isoformat(timespec="seconds"),
        pipeline.reason or "",
    )
