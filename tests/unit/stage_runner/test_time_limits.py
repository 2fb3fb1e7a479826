"""The limits of phases and stops are the operator's."""

import pytest

from builders import make_record
from waybill_shared.contract.commands import StopMode
from waybill_shared.contract.lifecycle import PHASES, Phase
from waybill_stage_runner.core.pipelines.actions import StopDriver
from waybill_stage_runner.core.pipelines.states import PipelineState
from waybill_stage_runner.core.pipelines.supervision import decide
from waybill_stage_runner.core.pipelines.time_limits import TimeLimits
from waybill_stage_runner.core.tick import Tick
from waybill_stage_runner.settings import Settings

SHORT = TimeLimits(start_ms=1, finish_ms=2, drain_ms=3, checkpoint_ms=4, close_ms=5)


@pytest.mark.parametrize(
    ("phase", "mode", "limit_ms", "then"),
    [
        (Phase.STARTING, StopMode.CHECKPOINT, 1, StopMode.FORCE),
        (Phase.FINISHING, StopMode.CHECKPOINT, 2, StopMode.FORCE),
        (Phase.DRAINING, StopMode.DRAIN, 3, StopMode.CHECKPOINT),
        (Phase.CHECKPOINT_STOPPING, StopMode.CHECKPOINT, 4, StopMode.FORCE),
        (Phase.RESTARTING, StopMode.CHECKPOINT, 4, StopMode.FORCE),
        (Phase.RESCALING, StopMode.CHECKPOINT, 4, StopMode.FORCE),
    ],
)
def test_a_phase_and_a_stop_last_as_long_as_the_operator_says(
    phase: Phase, mode: StopMode, limit_ms: int, then: StopMode
) -> None:
    is_stop = phase in (Phase.DRAINING, Phase.CHECKPOINT_STOPPING)
    record = make_record(desired="stopped" if is_stop else "running")
    state = PipelineState(record=record, phase=phase, driver=True, stop_mode=mode, times=SHORT)
    assert decide(state, Tick(), limit_ms - 1)[1] == ()
    after, made = decide(state, Tick(), limit_ms)
    assert StopDriver(mode=then) in made
    assert after.phase is (PHASES[phase].then or phase)


def test_a_driver_closes_sinks_as_long_as_the_operator_says() -> None:
    record = make_record(desired="deleted")
    state = PipelineState(
        record=record, phase=Phase.STOPPING, driver=True, closing=record, times=SHORT
    )
    assert decide(state, Tick(), SHORT.close_ms - 1)[1] == ()
    assert decide(state, Tick(), SHORT.close_ms)[1] == (StopDriver(mode=StopMode.FORCE),)


def test_settings_say_the_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    for number, name in enumerate(("STALL", "START_LIMIT", "FINISH_LIMIT", "DRAIN_LIMIT"), 1):
        monkeypatch.setenv(f"WAYBILL_STAGE_RUNNER_{name}_S", str(number))
    monkeypatch.setenv("WAYBILL_STAGE_RUNNER_CHECKPOINT_LIMIT_S", "5")
    monkeypatch.setenv("WAYBILL_STAGE_RUNNER_CLOSE_LIMIT_S", "6")
    assert Settings().time_limits == TimeLimits(
        stall_ms=1000,
        start_ms=2000,
        finish_ms=3000,
        drain_ms=4000,
        checkpoint_ms=5000,
        close_ms=6000,
    )
