"""The commands about topics of inputs: `topic grow`."""

from typing import Annotated

import typer

from waybill.cli import render
from waybill.cli.asking import require_yes
from waybill.cli.faults import exit_on_faults
from waybill.cli.render import Form, OutputOption
from waybill.cli.session import PipelineArgument, command_group, connect

topic = command_group("Change the topics of inputs.")
InputArgument = Annotated[str, typer.Argument(metavar="INPUT", help="the name of the input")]


@topic.command("grow")
def grow(
    name: PipelineArgument,
    source: InputArgument,
    *,
    partitions: Annotated[
        int, typer.Option("--partitions", min=1, metavar="N", help="how many it has then")
    ],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="do not ask")] = False,
    output: OutputOption = Form.TABLE,
) -> None:
    """Add partitions to the topic of an input, so that more tasks can read it at once.

    Keys move: from then on, new records of a key may go to another partition than its earlier
    ones, so a reader may see them in another order. Producers learn of new partitions some minutes
    later. Kafka removes no partition again. Every stage and every pipeline that reads the topic
    reads the new partitions from their first record, and tokens cover them.

    The operator says how many are allowed. To ask again changes nothing.

    \b
    Example:
      waybill topic grow orders orders --partitions 12

    \b
    Exit codes: 0 it has so many · 1 error, or answered with no · 2 usage, or --yes is needed
    """
    if not yes:
        what = f"keys of input {source} move to other partitions, and no partition goes again"
        require_yes(what, "Add partitions?", "--yes does it")
    with exit_on_faults(name), connect() as client:
        grown = client.grow_topic(name, source, partitions, yes=True)
    if output is Form.JSON:
        render.as_json({"topic": grown.topic, "partitions": grown.partitions, "added": grown.added})
    else:
        before = "" if grown.added else ", as before"
        render.data([f"{grown.topic} has {grown.partitions} partitions{before}"])
