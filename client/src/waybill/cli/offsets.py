"""The command `offsets`: where each stage of a pipeline is in the topics that it reads."""

from typing import TYPE_CHECKING

import typer

from waybill.cli import render
from waybill.cli.exits import ExitCode
from waybill.cli.render import Form, OutputOption
from waybill.cli.session import PipelineArgument, connect
from waybill.offsets import PartitionOffsets, PipelineOffsets, UnknownOffsets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.text import Text

HEADER = ("STAGE", "TOPIC", "BASE", "POSITION", "END", "LAG", "SINKS")


def offsets(name: PipelineArgument, output: OutputOption = Form.TABLE) -> None:
    """Show where each stage of a pipeline is in each partition that it reads.

    BASE is where the stage began: what was written before is not processed. POSITION is where its
    next batch begins, END is one past the last record now, and LAG is what is between them. If the
    sinks of a stage differ, SINKS says how far each is.

    What is unknown now is no number, and a line says why.

    \b
    Example:
      waybill offsets orders
      waybill offsets orders -o json | jq '[.stages[].inputs[].partitions[].lag] | add'

    \b
    Exit codes: 0 ok · 1 error, also when there is no such pipeline · 5 some of it is unknown now
    """
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
                numbers = (each.base, each.position, each.end, each.lag)
                place = f"{source.topic}[{each.partition}]"
                yield (stage.name, place, *map(_show, numbers), _sinks(each))


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
