"""Decides the end of a run that has read all that there was. Never does I/O, never reads the clock.

The driver reports it (FINISHING), and ends (FINISHED). The record says it from then on, so that
neither another runner nor an `apply` without a change begins the next run. A command to start or to
restart, and a change, clear it.

What a run reads is fixed when its stages start, so a run that goes on may not have what came since.
A `start` asks for it: the next run begins when this one has read all that it is to read.

If a stage is stopped, the run has read only what the others were to read: the pipeline fails then.
"""

from dataclasses import replace
from typing import Final

from waybill_shared.contract.commands import StopMode
from waybill_shared.contract.events import Command
from waybill_shared.contract.lifecycle import MOVES, Happening, Phase
from waybill_shared.contract.run_words import NEXT_RUN, READ_ALL
from waybill_shared.contract.words import Action
from waybill_stage_runner.core.pipelines import actions
from waybill_stage_runner.core.pipelines.attempts import reset_attempts
from waybill_stage_runner.core.pipelines.moves import Decision, move
from waybill_stage_runner.core.pipelines.states import PipelineState
from waybill_stage_runner.core.pipelines.stopped_stages import fail_stopped

REASON: Final = READ_ALL
MAY_HAVE_BEGUN: Final = (Phase.STARTING, Phase.RUNNING, Phase.PAUSED)
"""The phases in which what a run reads may be fixed already."""


def note_finished(state: PipelineState, now: int) -> Decision:
    """Note that the driver has read all that there was. It ends by itself.

    If the pipeline is to be paused by now, its next run begins paused. If one was asked for while
    this one ran, it begins now.
    """
    if (state.phase, Happening.FINISH) not in MOVES:
        return state, ()
    ending = replace(reset_attempts(state), stop_mode=StopMode.CHECKPOINT)
    if state.runs_again:
        return move(ending, Happening.RESTART, now, NEXT_RUN)
    happening = Happening.FINISH if state.record.desired == "running" else Happening.RESTART
    return move(ending, happening, now, REASON)


def note_start(state: PipelineState, command: Command | None) -> PipelineState:
    """Note that another run is to follow, if a start comes while one goes on. A run that does not
    end by itself reads all that comes, and this changes nothing.
    """
    again = _starts(command) and state.phase in MAY_HAVE_BEGUN
    return replace(state, runs_again=True) if again else state


def finish(state: PipelineState, now: int) -> Decision:
    """Write down that the run has finished, now that its driver has ended. If a stage is stopped,
    the pipeline has failed.
    """
    if state.record.stopped_stages:
        return fail_stopped(state, now)
    record = replace(state.record, finished=True)
    after, more = move(
        replace(state, record=record, problems=(), error=None), Happening.REST, now, REASON
    )
    return after, (actions.WriteRecord(), *more)


def comes_too_late(state: PipelineState, command: Command | None) -> bool:
    """Return True if a start comes too late for the run that ends now: it asks for the next one."""
    return _starts(command) and state.phase is Phase.FINISHING


def _starts(command: Command | None) -> bool:
    return command is not None and command.action is Action.START
