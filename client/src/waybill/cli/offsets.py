"""The command `offsets`: where each stage of a pipeline is, and where its next run begins."""

from typing import TYPE_CHECKING, Annotated

import typer

from waybill.cli import render
from waybill.cli.changes import change
from waybill.cli.exits import ExitCode
from waybill.cli.phase_view import DRIVER_WAIT_S
from waybill.cli.render import Form, OutputOption
from waybill.cli.restarting import RewindOption, beginning, send_confirmed
from waybill.cli.session import PipelineArgument, TimeoutOption, connect
from waybill.models import Operation
from waybill.offsets import PartitionOffsets, PipelineOffsets, UnknownOffsets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.text import Text

    from waybill.sync.client import Client

HEADER = ("STAGE", "TOPIC", "BASE", "POSITION", "PENDING", "END", "LAG", "SINKS")


def offsets(  # noqa: PLR0917 - options of a command line
    name: PipelineArgument,
    where: Annotated[
        str | None,
        typer.Option(
            "--set",
            metavar="WHERE",
            help="where the next run begins: earliest, latest, TIME, 7 days ago, or"
            " TOPIC[PARTITION]=OFFSET,…",
        ),
    ] = None,
    reset: Annotated[bool, typer.Option("--reset", help="take back what is pending")] = False,  # noqa: FBT002 - a flag of the command line
    stage: Annotated[
        str | None, typer.Option("--stage", metavar="NAME", help="the only stage that begins there")
    ] = None,
    yes: RewindOption = False,  # noqa: FBT002 - a flag of the command line
    timeout: TimeoutOption = DRIVER_WAIT_S,
    output: OutputOption = Form.TABLE,
) -> None:
    """Show where each stage of a pipeline is in each partition that it reads, or set it.

    BASE is where the stage began: what was written before is not processed. POSITION is where its
    next batch begins, END is one past the last record now, and LAG is what is between them. If the
    sinks of a stage differ, SINKS says how far each is.

    What is unknown now is no number, and a line says why.

    --set says where the next run begins, as `waybill restart --from` does, and starts nothing: the
    pipeline is stopped, finished or failed. PENDING shows it until a run has done it. --reset takes
    it back: the next run begins where the sinks are.

    \b
    Example:
      waybill offsets orders
      waybill offsets orders --set orders.in[0]=120,orders.in[1]=80
      waybill offsets orders --reset
      waybill offsets orders -o json | jq '[.stages[].inputs[].partitions[].lag] | add'

    \b
    Exit codes: 0 ok · 1 error, also when there is no such pipeline · 2 usage, or --yes is needed ·
      4 not done in time · 5 some of it is unknown now
    """
    if where is None and (stage is not None or yes):
        raise typer.BadParameter("--stage and --yes go with --set")
    if where is not None and reset:
        raise typer.BadParameter("take --set or --reset")
    if where is not None:
        change(lambda client: _set(client, name, where, stage, yes=yes), timeout, output)
    elif reset:
        change(lambda client: client.reset_offsets(name), timeout, output)
    else:
        _show_offsets(name, output)


def _set(client: "Client", name: str, where: str, stage: str | None, *, yes: bool) -> Operation:
    begin = beginning(where)
    assert begin is not None

    def send(*, confirmed: bool) -> Operation:
        return client.set_offsets(name, begin, stage=stage, yes=confirmed)

    return send_confirmed(client, name, send, yes=yes)


def _show_offsets(name: str, output: Form) -> None:
    with connect() as client:
        found = client.offsets(name)
    if output is Form.JSON:
        render.as_json(found.raw)
    else:
        render.data(_lines(found))
    if found.unknown:
        raise typer.Exit(ExitCode.UNKNOWN)


def _lines(found: PipelineOffsets) -> "Iterator[Text]":
    yield from render.table([*_rows(found)], header=HEADER)
    for each in found.unknown:
        yield render.words("unknown", _explain(each))
        if each.hint:
            yield render.words("hint:", each.hint)


def _rows(found: PipelineOffsets) -> "Iterator[tuple[str, ...]]":
    for stage in found.stages:
        for source in stage.inputs:
            for each in source.partitions:
                place = f"{source.topic}[{each.partition}]"
                pending = "" if each.pending is None else str(each.pending)
                before, after = (each.base, each.position), (each.end, each.lag)
                numbers = (*map(_show, before), pending, *map(_show, after))
                yield (stage.name, place, *numbers, _sinks(each))


def _show(number: int | None) -> str:
    return "unknown" if number is None else str(number)


def _sinks(each: PartitionOffsets) -> str:
    """Return how far each sink is, as in `copy 5, lake 7`; nothing if all are equally far."""
    if len({sink.frontier for sink in each.sinks}) == 1:
        return ""
    return ", ".join(f"{sink.name} {_show(sink.frontier)}" for sink in each.sinks)


def _explain(unknown: UnknownOffsets) -> str:
    """Return `end of orders.in: the broker does not answer (not_available_now)`, for example."""
    where = "" if unknown.topic is None else f" of {unknown.topic}"
    return f"{unknown.what}{where}: {unknown.detail} ({unknown.reason})"
