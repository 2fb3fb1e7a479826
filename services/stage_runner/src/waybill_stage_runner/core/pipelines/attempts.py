"""Decides how often a driver is started again, and when. Never does I/O, never reads the clock."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final
from zlib import crc32

from waybill_shared.contract.driver_news import SinkWait
from waybill_shared.contract.errors import Problem
from waybill_shared.contract.lifecycle_events import LifecycleError
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.words import Obstacle
from waybill_stage_runner.core.pipelines.events import DriverEnded
from waybill_stage_runner.core.pipelines.states import PipelineState

BACKOFF_MS_FIRST: Final = 500
BACKOFF_MS_MAX: Final = 60_000
JITTER_PARTS: Final = 4  # at most one of so many parts of a wait is left out
JITTER_STEPS: Final = 1_000
DOUBLINGS_MAX: Final = 7  # enough to reach the longest wait
CRASHES_MAX: Final = 20
MESSAGE_CHARACTERS_MAX: Final = 300  # at most, of a message of a sink
PROBLEM_OF: Final[Mapping[str, Slug]] = {
    "user": Slug.INVALID,
    "external": Slug.COMMAND_GIVEN_UP,
    "internal": Slug.INTERNAL,
}
"""The problem of a command that failed, by the domain of the error that ended its driver."""


def crash_error(event: DriverEnded) -> LifecycleError:
    return LifecycleError(
        domain="internal",
        message=f"the driver ended with exit code {event.exit_code}",
        hint="see the driver's log: `waybill logs PIPELINE`",
        stage=None,
        retryable=True,
    )


def may_retry(state: PipelineState, error: LifecycleError) -> bool:
    """Return True if the driver is to be started again after `error`.

    External errors are retried without end: an outside system may be down for a day, and the
    pipeline must continue afterwards. Of crashes of our own only `CRASHES_MAX` are allowed.
    """
    if not error.retryable:
        return False
    return error.domain == "external" or state.crashes < CRASHES_MAX


def wait_longer(state: PipelineState, error: LifecycleError, now: int) -> PipelineState:
    wait = min(BACKOFF_MS_FIRST * 2 ** min(state.attempt, DOUBLINGS_MAX), BACKOFF_MS_MAX)
    wait -= _jitter(state, wait)
    wait = max(wait, min(error.retry_after_ms, BACKOFF_MS_MAX))
    crashed = error.domain != "external"
    same = not state.crashes or state.crash_stage == error.stage
    named = error.stage if same else None
    return replace(
        state,
        attempt=state.attempt + 1,
        crashes=state.crashes + crashed,
        crash_stage=named if crashed else state.crash_stage,
        next_at=now + wait,
        problems=(),
    )


def _jitter(state: PipelineState, wait_ms: int) -> int:
    """Return up to a quarter of the wait, another part of it for each pipeline and attempt.

    So pipelines that failed together do not start again together. It is no random number, because
    what decides has none.
    """
    seed = f"{state.record.pipeline_uid}/{state.attempt}".encode()
    return wait_ms * (crc32(seed) % JITTER_STEPS) // (JITTER_PARTS * JITTER_STEPS)


def waits_for_sink(error: LifecycleError) -> tuple[SinkWait, ...]:
    """Return the sink that is waited for, if it is the reason of the next attempt."""
    if error.stage is None or error.sink is None or error.domain != "external":
        return ()
    first_line = error.message.split("\n", 1)[0][:MESSAGE_CHARACTERS_MAX]
    by = Obstacle.SINK_RETRYING
    return (SinkWait(stage=error.stage, sink=error.sink, blocked_by=by, message=first_line),)


def reset_attempts(state: PipelineState) -> PipelineState:
    """Reset the counts of attempts and crashes, so that earlier failures count no more."""
    return replace(state, attempt=0, crashes=0, crash_stage=None)


def as_problems(state: PipelineState, error: LifecycleError) -> tuple[Problem, ...]:
    return state.problems or (Problem(message=error.message, hint=error.hint),)
