"""The command `history`: what happened to a pipeline in the last 30 days, or its runs."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Protocol, TypeVar

import typer

from waybill.cli import render
from waybill.cli.events import WIDTH, describe_event
from waybill.cli.render import Form, OutputOption
from waybill.cli.session import PipelineArgument, connect, not_empty
from waybill.fields import Fields

if TYPE_CHECKING:
    from rich.text import Text

    from waybill.batches import StageBatch
    from waybill.histories import PipelineEvent, PipelineRun
    from waybill.pipelines import PipelineFailure

TIMEOUT_S = 60.0  # a topic is read while it is asked
LIMIT = 100
RANGES_SHOWN = 3  # of a batch; -o json has more
RunsOption = Annotated[bool, typer.Option("--runs", help="show its runs, a line each")]


BatchesOption = Annotated[
    str | None,
    typer.Option(
        "--batches", metavar="STAGE", help="show the batches of this stage", callback=not_empty
    ),
]


class RawEntry(Protocol):
    """An entry of a history."""

    @property
    def raw(self) -> Mapping[str, object]: ...


T = TypeVar("T", bound=RawEntry)


def history(
    name: PipelineArgument,
    *,
    most: Annotated[
        int, typer.Option("-n", "--limit", min=1, help="show at most so many, the newest")
    ] = LIMIT,
    runs: RunsOption = False,
    batches: BatchesOption = None,
    output: OutputOption = Form.TABLE,
) -> None:
    """Show what happened to a pipeline in the last 30 days, the newest last.

    Each line has the time, the change of phase or what else happened, the reason, and who asked
    for it. Failures have their attempt, error and hint. With -o json, each event is a line of its
    own. `waybill events NAME --follow` shows what happens next.

    With --runs, each line is a run: when and by whom it was started, and when, why and by whom it
    was ended. With --batches STAGE, each line is a batch of the stage: its number, when it began,
    how many offsets it read, of which some hold no record, and for each sink the rows, the time of
    the commit, and the version.

    \b
    Example:
      waybill history orders --limit 20
      waybill history orders --runs
      waybill history orders --batches load --limit 20
      waybill history orders -n 1000 -o json | jq -r 'select(.phase == "Failed").at'

    Exit codes: 0 ok · 1 error, also when there is no such pipeline or stage · 2 usage
    """
    if runs and batches is not None:
        raise typer.BadParameter("--runs and --batches do not go together")
    with connect(TIMEOUT_S) as client:
        if batches is not None:
            found = client.batches(name, batches, limit=most + 1)
            _show(found, most, output, _batch_lines)
        elif runs:
            _show(client.runs(name, limit=most + 1), most, output, _run_lines)
        else:
            _show(client.history(name, limit=most + 1), most, output, _event_lines)


def _show(
    newest: "Iterable[T]", most: int, output: Form, lines: "Callable[[T], Iterator[Text]]"
) -> None:
    """Print entries of a history, the newest last; `newest` may have one more than `most`."""
    looked_at = [*newest]
    found = looked_at[:most][::-1]
    if output is Form.JSON:
        render.data(json.dumps(entry.raw, ensure_ascii=False) for entry in found)
        return
    if not found:
        render.talk("nothing is known of the last 30 days")
    for entry in found:
        render.data(lines(entry))
    if len(looked_at) > most:
        render.talk(f"the newest {most}: --limit shows more")


def _batch_lines(batch: "StageBatch") -> "Iterator[Text]":
    at = str(batch.raw.get("started_at", ""))
    places = ", ".join(
        f"{each.topic}[{each.partition}] {each.start}-{each.end}"
        for each in batch.ranges[:RANGES_SHOWN]
    )
    more = batch.ranges_count - RANGES_SHOWN
    said = f"{places}, and {more} more" if more > 0 else places
    read = render.count(batch.records, "offset")
    yield render.words(f"batch {batch.batch:<5}", at, f"{read} of", said)
    for sink in batch.sinks:
        ended = "" if sink.committed_at is None else f"at {sink.committed_at:%H:%M:%S.%f}"[:-3]
        version = ", ".join(f"{key} {text}" for key, text in (sink.version or {}).items())
        parts = [render.count(sink.rows, "row"), ended, version]
        yield render.words(" ", sink.name, ", ".join(filter(None, parts)))


def _run_lines(run: "PipelineRun") -> "Iterator[Text]":
    began = str(run.raw.get("began") or "before")
    ended = "goes on" if run.end is None else str(run.raw.get("ended") or "")
    by = f"by {run.ended_by}" if run.ended_by else ""
    said = [part for part in (run.reason, by) if part]
    if run.started_by:
        said.append(f"started by {run.started_by}")
    if run.batches is not None and run.rows is not None:
        said.append("1 batch" if run.batches == 1 else f"{run.batches} batches")
        said.append(render.count(run.rows, "row"))
    if run.parallelism:
        said.append(f"parallelism {run.parallelism}")
    what = run.end or run.phase
    yield render.words(
        f"run {run.run:<5}", f"{began:<24}", f"{ended:<24}", f"{what:<10}", ", ".join(said)
    )
    yield from _error_lines(run.error)


def _event_lines(event: "PipelineEvent") -> "Iterator[Text]":
    what, why = describe_event(Fields(event.raw, "an event"))
    attempt = f"attempt {event.attempt}" if event.attempt else ""
    said = (part for part in (why, f"by {event.actor}" if event.actor else "", attempt) if part)
    at = str(event.raw.get("at", ""))
    yield render.words(at, f"{what:<{WIDTH}}", ", ".join(said))
    if event.phase_from is not None:
        yield from _error_lines(event.error)


def _error_lines(error: "PipelineFailure | None") -> "Iterator[Text]":
    if error is None:
        return
    yield render.words(" ", "error:", error.message)
    if error.hint:
        yield render.words(" ", "hint:", error.hint)
