"""Shows how far a token is, stage by stage and sink by sink.

On a terminal it redraws one block; elsewhere it prints one line per change. Never prints to stdout.
"""

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from waybill.cli import render
from waybill.outcomes import Outcome, SinkProgress, StageProgress

if TYPE_CHECKING:
    from rich.live import Live
    from rich.text import Text

_Row = tuple[str, ...]
REWINDING = {
    True: "rewinding: it may show older rows",
    None: "maybe rewinding: not known now",
    False: "",
}


class ProgressView:
    """A view of the outcomes of one token, as they come."""

    def __init__(self) -> None:
        self._shown: set[_Row] = set()
        self._live: Live | None = None

    def __enter__(self) -> Self:
        if render.lively():
            from rich.live import Live

            printer = render.console(sys.stderr)
            self._live = Live(console=printer, transient=True, refresh_per_second=8)
            self._live.start()
        return self

    def __exit__(self, *exc: object) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, outcome: Outcome) -> None:
        rows = progress_rows(outcome)
        if not rows and not outcome.final:
            rows = [(outcome.kind.value,)]
        if self._live is not None:
            self._live.update(_block(rows), refresh=True)
            return
        changed = [row for row in rows if row not in self._shown]
        self._shown = set(rows)
        render.talk(*(render.words(*filter(None, row)) for row in changed))


def progress_rows(outcome: Outcome) -> list[_Row]:
    """Return a row per sink: stage, sink, state and details.

    If there are several pipelines, the name of the pipeline is before that of the stage.
    """
    stages = [
        replace(stage, stage=f"{part.pipeline}.{stage.stage}")
        for part in outcome.parts
        for stage in part.stages
    ] or outcome.stages
    return [_row(stage, sink) for stage in stages for sink in (stage.sinks or (None,))]


def _row(stage: StageProgress, sink: SinkProgress | None) -> _Row:
    if sink is None:
        return (stage.stage, "", stage.state, _more(stage, None))
    return (stage.stage, sink.name, sink.state, _more(stage, sink))


def _more(stage: StageProgress, sink: SinkProgress | None) -> str:
    facts = []
    if sink is not None and sink.behind:
        facts.append(f"{sink.behind} to come")
    if sink is not None and sink.batch_rows is not None:
        facts.append(render.count(sink.batch_rows, "row"))
    if stage.batch is not None:
        facts.append(f"batch {stage.batch}")
    if sink is not None and sink.version:
        facts.extend(f"{render.spell(name)} {value}" for name, value in sink.version.items())
    if sink is not None and sink.detail:
        facts.append(sink.detail)
    if sink is not None and sink.guarantee != "once":
        facts.append(render.spell(sink.guarantee))
    if sink is not None and (mark := REWINDING[sink.rewinding]):
        facts.append(mark)
    if blocked_by := _obstacle(stage, sink):
        facts.append(f"blocked by {blocked_by}")
    return ", ".join(facts)


def _obstacle(stage: StageProgress, sink: SinkProgress | None) -> str | None:
    """Return what blocks this sink.

    If one sink of the stage blocks it, the other sinks are not blocked.
    """
    if not any(each.blocked_by for each in stage.sinks):
        return stage.blocked_by
    if sink is None or not sink.blocked_by:
        return None
    return f"{sink.blocked_by}: {sink.message}" if sink.message else sink.blocked_by


def _block(rows: list[_Row]) -> "Text":
    from rich.text import Text

    return Text("\n").join(render.table(rows))
