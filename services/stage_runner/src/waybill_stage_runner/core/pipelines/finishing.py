"""Decides the end of a run that has read all that there was. Never does I/O, never reads the clock.

The driver reports it (FINISHING), and ends (FINISHED). The record says it from then on, so that
neither another runner nor an `apply` without a change begins the next run. A command to start or to
restart, and a change, clear it.
"""

from dataclasses import replace
from typing import Final

from waybill_shared.contract.events import Command
from waybill_shared.contract.lifecycle import MOVES, Happening, Phase
from waybill_shared.contract.words import Action
from waybill_stage_runner.core.pipelines import actions
from waybill_stage_runner.core.pipelines.attempts import reset_attempts
from waybill_stage_runner.core.pipelines.moves import Decision, move
from waybill_stage_runner.core.pipelines.states import PipelineState

REASON: Final = "all that there was is read"


def note_finished(state: PipelineState, now: int) -> Decision:
    """Note that the driver has read all that there was. It ends by itself.

    If the pipeline is to be paused by now, its next run begins paused.
    """
    if (state.phase, Happening.FINISH) not in MOVES:
        return state, ()
    happening = Happening.FINISH if state.record.desired == "running" else Happening.STOP
    return move(reset_attempts(state), happening, now, REASON)


def finish(state: PipelineState, now: int) -> Decision:
    """Write down that the run has finished, now that its driver has ended."""
    record = replace(state.record, finished=True)
    after, more = move(
        replace(state, record=record, problems=(), error=None), Happening.REST, now, REASON
    )
    return after, (actions.WriteRecord(), *more)


def comes_too_late(state: PipelineState, command: Command | None) -> bool:
    """Return True if a start comes too late for the run that ends now: it asks for the next one."""
    started = command is not None and command.action is Action.START
    return started and state.phase is Phase.FINISHING
