"""How the run ends that a restart replaces, and what whoever asked is told of a failure."""

from dataclasses import replace

import pytest

from message_builders import make_command
from unit.stage_runner.decisions import Decisions
from waybill_shared.contract.commands import STOP_MODES, Restart, StopMode
from waybill_shared.contract.lifecycle import Phase
from waybill_shared.contract.lifecycle_events import LifecycleError
from waybill_stage_runner.core.pipelines.actions import Answer, PipelineAction, StopDriver
from waybill_stage_runner.core.pipelines.attempts import BACKOFF_MS_MAX, wait_longer
from waybill_stage_runner.core.pipelines.events import (
    DriverEnded,
    DriverFailed,
    DriverRuns,
    RecordRequested,
)
from waybill_stage_runner.core.pipelines.stopping import NOT_REACHED

ERROR = LifecycleError(
    domain="external", message="the catalog is away", hint="", stage="load", retryable=True
)


def restart(pipeline: Decisions, mode: StopMode) -> tuple[PipelineAction, ...]:
    command = replace(make_command("restart", id="c2"), body=Restart(mode=mode))
    return pipeline.on(RecordRequested(record=pipeline.state.record, command=command))


@pytest.mark.parametrize("mode", [StopMode.CHECKPOINT, StopMode.FORCE])
def test_the_run_of_before_ends_as_the_restart_says(running: Decisions, mode: StopMode) -> None:
    assert StopDriver(mode=mode) in restart(running, mode)
    running.on(DriverEnded(exit_code=0))
    assert running.state.phase is Phase.STARTING
    assert running.state.record.run == 2


def test_a_forced_restart_overtakes_a_stop_that_goes_on(running: Decisions) -> None:
    restart(running, StopMode.CHECKPOINT)
    assert StopDriver(mode=StopMode.FORCE) in restart(running, StopMode.FORCE)


def test_a_stop_that_overtakes_a_restart_gives_it_no_more_time(running: Decisions) -> None:
    limit_ms = STOP_MODES[StopMode.CHECKPOINT].limit_ms
    restart(running, StopMode.CHECKPOINT)
    running.after(limit_ms - 1)
    running.want(replace(running.state.record, desired="stopped"), "c3", "stop")
    assert running.state.phase is Phase.CHECKPOINT_STOPPING
    assert StopDriver(mode=StopMode.FORCE) in running.after(1)


def test_a_restart_continues_with_a_warning_if_the_last_batch_fails(running: Decisions) -> None:
    restart(running, StopMode.CHECKPOINT)
    running.on(DriverFailed(problems=(), error=ERROR), DriverEnded(exit_code=1), DriverRuns())
    (answer,) = (action for action in running.actions if isinstance(action, Answer))
    assert (answer.command.id, answer.state) == ("c2", "done")
    assert answer.warnings == (f"{NOT_REACHED[StopMode.CHECKPOINT]}: the catalog is away",)
    assert running.state.warnings == (), "once"


def test_pipelines_that_fail_together_do_not_start_again_together(running: Decisions) -> None:
    waits = set()
    for number in range(50):
        record = replace(running.state.record, pipeline_uid=f"uid-{number}")
        state = replace(running.state, record=record, attempt=9)
        next_at = wait_longer(state, ERROR, 0).next_at
        assert next_at is not None
        assert 3 * BACKOFF_MS_MAX // 4 <= next_at <= BACKOFF_MS_MAX
        waits.add(next_at)
    assert len(waits) > 40


def test_the_wait_of_one_pipeline_is_shorter_by_another_part_each_time(running: Decisions) -> None:
    longest = [replace(running.state, attempt=attempt) for attempt in range(9, 29)]
    assert len({wait_longer(state, ERROR, 0).next_at for state in longest}) > 15
