"""Decides what a rescale does to a run. Never does I/O, never reads the clock.

A run keeps the cores of its driver. If it is to have others, its batch ends (RESCALING), then the
next run begins, in a driver of that size. A pipeline that is paused stays paused. Where no driver
lives, the number is for the next start; one that has failed stays so.
"""

from dataclasses import replace

from waybill_shared.contract.commands import Rename, Rescale, SetOffsets, StopMode
from waybill_shared.contract.lifecycle import MOVES, Happening, Phase
from waybill_shared.contract.words import OperationState
from waybill_stage_runner.core.pipelines.attempts import reset_attempts
from waybill_stage_runner.core.pipelines.moves import Decision, answer_all, move
from waybill_stage_runner.core.pipelines.states import PipelineState


def is_resized(state: PipelineState) -> bool:
    """Return True if the run that goes on has other cores than it is to have."""
    resizable = (state.phase, Happening.RESCALE) in MOVES
    return resizable and state.parallelism != state.planned_parallelism


def rescale(state: PipelineState, now: int) -> Decision:
    """Let the batch end. The next run begins when its driver has ended."""
    reason = f"rescaled from {state.parallelism} to {state.planned_parallelism}"
    fresh = replace(reset_attempts(state), stop_mode=StopMode.CHECKPOINT)
    return move(fresh, Happening.RESCALE, now, reason)


def keep_failed(state: PipelineState) -> Decision | None:
    """Answer a command that only concerns the next run of a pipeline that has failed, or its name:
    it starts nothing. None: it is another case.
    """
    bodies = Rename | Rescale | SetOffsets
    for_next = bool(state.pending) and isinstance(state.pending[-1].body, bodies)
    failed = state.phase is Phase.FAILED and state.record.wants_run
    return answer_all(state, OperationState.DONE) if failed and for_next else None
