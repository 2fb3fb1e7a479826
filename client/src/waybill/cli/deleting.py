"""Prints what a deleted pipeline loses and what stays, and asks, for the command `delete`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from waybill.cli import render
from waybill.cli.asking import require_yes
from waybill.cli.render import Form
from waybill.errors import NotFound, Unreachable, WaybillError
from waybill.pipelines import Pipeline

if TYPE_CHECKING:
    from waybill.sync.client import Client

LOST = "end lost, pipeline_deleted"


def ask_to_delete(client: "Client", name: str, output: Form, *, yes: bool) -> None:
    """Print which tokens end lost and what stays, and ask the user.

    Raises Exit or Abort if the pipeline must not be deleted. NotFound: there is no such pipeline.
    """
    if yes and output is Form.JSON:
        return  # nothing to print, nothing to ask
    try:
        lines = [_losses(client, name), *_remains(client, name)]
    except NotFound:
        if yes:
            return  # one that was applied just now may be there all the same
        raise
    if yes:
        render.talk(*lines)
        return
    render.complain(*lines)
    hint = "--yes deletes it; `waybill stop` only stops it, and its tokens wait"
    require_yes(f"this deletes pipeline {name}", "Delete it?", hint)


def _losses(client: "Client", name: str) -> str:
    """Return the line about tokens that end lost.

    It counts records that have not arrived in each sink at the end of the pipeline.
    """
    try:
        flow = next((flow for flow in client.flow() if flow.name == name), None)
    except Unreachable:
        raise
    except WaybillError:
        flow = None
    if flow is None or flow.reason is not None:
        return f"tokens: those that are not final {LOST}; how many records that are is not known"
    left = [(each.name, each.written - each.arrived) for each in flow.inputs]
    missing = ", ".join(f"{render.count(n, 'record')} of input {i}" for i, n in left if n > 0)
    if not missing:
        return f"tokens: all that was sent has arrived; tokens of what is sent from now on {LOST}"
    return f"tokens: those that name what has not arrived {LOST}; this is about {missing}"


def _remains(client: "Client", name: str) -> Iterator[str]:
    try:
        pipeline = client.pipeline(name)
    except (NotFound, Unreachable):
        raise
    except WaybillError as error:
        yield f"its topics and tables stay; their names are not known now: {error}"
        return
    topics, tables = _places(pipeline)
    yield f"stays: topics {', '.join(topics)}, and their dead-letter topics"
    if tables:
        yield f"stays: {', '.join(tables)}"


def _places(pipeline: Pipeline) -> tuple[list[str], list[str]]:
    """Return the topics, and all else that its sinks have written; a `console` sink is left out."""
    sinks = [sink for stage in pipeline.stages for sink in stage.sinks if sink.target is not None]
    written = [sink.target or "" for sink in sinks if sink.kind == "kafka"]
    topics = [*(source.topic for source in pipeline.inputs), *written]
    others = [f"{s.kind} {s.target}" for s in sinks if s.kind not in ("kafka", "console")]
    return list(dict.fromkeys(topics)), list(dict.fromkeys(others))
