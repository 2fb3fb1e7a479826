"""Any sequence of commands, crashes, stages that stop, ticks and times of a schedule: only legal
moves, one driver, one answer each.
"""

from dataclasses import replace
from typing import Final, get_args

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    initialize,
    invariant,
    precondition,
    rule,
)

from builders import MANIFEST, applied, make_sink, make_stage
from message_builders import make_command, make_problem
from strategies import patiently
from unit.stage_runner.supervised import LIMITS, WITH_RUN
from unit.stage_runner.supervised_stages import ENDS, OTHER, SupervisedStages
from waybill_shared.contract.commands import RESTART_MODES, Restart, Stop, StopMode
from waybill_shared.contract.driver_news import StageActivity
from waybill_shared.contract.events import Desired
from waybill_shared.contract.lifecycle import (
    RUN_FOLLOWS,
    STOPS,
    WITH_DRIVER,
    Phase,
    allowed_actions,
)
from waybill_shared.contract.lifecycle_events import LifecycleError
from waybill_shared.contract.words import Action, Obstacle
from waybill_stage_runner.core.pipelines.events import (
    DriverBlocked,
    DriverFailed,
    DriverProgress,
    DriverRuns,
    RecordRequested,
)
from waybill_stage_runner.core.pipelines.parallelism import rescale_record
from waybill_stage_runner.core.pipelines.scheduling import with_next_time
from waybill_stage_runner.core.pipelines.states import PipelineState
from waybill_stage_runner.core.pipelines.stopped_stages import is_all_stopped
from waybill_stage_runner.core.pipelines.time_limits import BY_DEFAULT

RESTS: Final = (Phase.STOPPED, Phase.FINISHED, Phase.FAILED)
WAYS_TO_END: Final = (
    *(Stop(mode=mode) for mode in StopMode),
    *(Restart(mode=mode) for mode in RESTART_MODES.values()),
)
AS_ASKED: Final = {
    StopMode.DRAIN: Phase.DRAINING,
    StopMode.CHECKPOINT: Phase.CHECKPOINT_STOPPING,
    StopMode.FORCE: Phase.STOPPING,
}
SCHEDULE: Final = "schedule: {every: 1 minute, concurrency: CONCURRENCY}\n"
SCHEDULED: Final = tuple(
    SCHEDULE.replace("CONCURRENCY", each) + ENDS for each in ("forbid", "replace")
)


class Supervision(SupervisedStages):
    """A driver that may say things and end at any time, and people who ask."""

    @initialize(text=st.sampled_from([MANIFEST, ENDS, *SCHEDULED]), runs=st.booleans())
    def is_recorded(self, text: str, runs: bool) -> None:
        """As one that ends by itself, by a schedule or without one, or as one that never ends. The
        runner finds it so. `runs`: it is started before all else.
        """
        scheduled = "schedule" in text
        record = replace(self.state.record, manifest=applied(text), finished=scheduled)
        self.said = with_next_time(record, None, self.now)
        assert (self.said.next_run_at is not None) is scheduled
        self.state = PipelineState(record=self.said, limits=LIMITS)
        if scheduled:
            self.on(RecordRequested(record=self.said, command=None, written=True))
        if runs:
            self.command("running", None)
            self.on(DriverRuns())

    @rule(
        desired=st.sampled_from(get_args(Desired)),
        holds=st.sampled_from([None, ("lake",), ("lake", "out"), ("lake", "aside")]),
        action=st.sampled_from(["start", "apply"]),
    )
    def command(
        self, desired: Desired, holds: tuple[str, ...] | None, action: str = "start"
    ) -> None:
        """`holds` names the sinks of a changed definition. An `apply` without a change wants no
        run after the one that has finished, and pauses nothing.
        """
        before = self.state.record
        pauses = (action, desired) == ("apply", "paused") and before.desired != "paused"
        if before.desired == "deleted" or pauses:
            return
        kept_finished = (desired, before.desired, action) == ("running", "running", "apply")
        record = replace(before, desired=desired, finished=before.finished and kept_finished)
        if action == "start" or is_all_stopped(before):
            record = replace(record, stopped_stages=())
        if holds is not None and desired != "deleted":
            had = {sink.name: sink for sink in before.stages[0].sinks}
            generation = before.generation + 1
            kept = tuple(had.get(name, make_sink(name, since=generation)) for name in holds)
            stages = (make_stage(sinks=kept), *before.stages[1:])
            stopped = tuple(each for each in record.stopped_stages if each.stage == OTHER)
            record = replace(record, stages=stages, stopped_stages=stopped)
            record = replace(record, generation=generation, finished=False)
        self.sent.append(f"c{len(self.sent)}")
        record = with_next_time(record, before, self.now)
        self.on(RecordRequested(record=record, command=make_command(action, id=self.sent[-1])))

    @precondition(lambda self: self.state.record.desired != "deleted")
    @rule(body=st.sampled_from(WAYS_TO_END))
    def end_run(self, body: Restart | Stop) -> None:
        """In any mode: whether it is refused is decided before."""
        before = self.state.record
        goes_on: Desired = "paused" if before.desired == "paused" else "running"
        restarts = isinstance(body, Restart)
        stopped = () if restarts else before.stopped_stages
        record = replace(before, desired=goes_on if restarts else "stopped", finished=False)
        record = with_next_time(replace(record, stopped_stages=stopped), before, self.now)
        self.sent.append(f"c{len(self.sent)}")
        asked = replace(make_command("stop", id=self.sent[-1]), body=body)
        self.on(RecordRequested(record=record, command=asked))

    @precondition(lambda self: Action.RESCALE in self.allowed())
    @rule(parallelism=st.integers(1, LIMITS.most))
    def rescale(self, parallelism: int) -> None:
        """Where no driver lives or is waited for, it starts none."""
        before, rested = self.state.record, self.state.phase in RESTS
        self.sent.append(f"c{len(self.sent)}")
        asked = make_command("rescale", id=self.sent[-1])
        record = rescale_record(before, parallelism, asked.actor, self.now)
        self.on(RecordRequested(record=record, command=asked))
        if rested:
            assert not self.alive
            assert self.answered[-1] == self.sent[-1]

    @precondition(lambda self: Action.SET_OFFSETS in self.allowed())
    @rule()
    def set_offsets(self) -> None:
        """It is for the next run, and begins none."""
        self.sent.append(f"c{len(self.sent)}")
        asked = make_command("set_offsets", id=self.sent[-1])
        record = replace(self.state.record, updated_at=self.now)
        self.on(RecordRequested(record=record, command=asked))
        assert not self.alive
        assert self.answered[-1] == self.sent[-1]

    def allowed(self) -> tuple[Action, ...]:
        return allowed_actions(self.state.phase, self.state.record.desired)

    @precondition(lambda self: self.alive)
    @rule(blocked_by=st.sampled_from([None, Obstacle.BLOCKED_BY_OPEN_TRANSACTION]))
    def driver_is_blocked(self, blocked_by: Obstacle | None) -> None:
        self.on(DriverBlocked(blocked_by=blocked_by))

    @precondition(lambda self: self.alive and not self.closing)
    @rule(quiet_ms=st.sampled_from([0, BY_DEFAULT.stall_ms, 2 * BY_DEFAULT.stall_ms]))
    def driver_reports_progress(self, quiet_ms: int) -> None:
        stage = StageActivity(stage="enrich", batch_ms=quiet_ms, quiet_ms=quiet_ms)
        self.on(DriverProgress(stages=(stage,)))

    @precondition(lambda self: self.alive)
    @rule(retryable=st.booleans(), told=st.booleans())
    def driver_fails(self, retryable: bool, told: bool) -> None:
        if told:
            error = LifecycleError(
                domain="external", message="away", hint="", stage=None, retryable=retryable
            )
            self.on(DriverFailed(problems=(make_problem(),), error=error))
        self.driver_ends(1)

    @invariant()
    def a_run_has_the_cores_that_are_wanted_or_ends(self) -> None:
        if self.state.phase in WITH_DRIVER:
            assert self.parallelism == self.state.planned_parallelism == self.state.parallelism

    @invariant()
    def a_rescale_is_followed_by_a_run(self) -> None:
        if self.state.phase is Phase.RESCALING:
            assert self.alive
            assert self.state.record.desired in WITH_RUN

    @invariant()
    def phase_and_wish_belong_together(self) -> None:
        waits = self.state.closing is not None and self.state.next_at is not None
        if self.state.record.desired not in WITH_RUN:
            assert self.state.phase in {Phase.CREATED, Phase.STOPPED, *STOPS}
        if self.state.record.desired not in WITH_RUN or self.state.next is not None:
            assert (self.alive or waits) is (self.state.phase in STOPS)

    @invariant()
    def phase_says_why_a_driver_ends(self) -> None:
        state = self.state
        if state.phase not in STOPS:
            return
        if state.closing is not None:
            assert state.phase is Phase.STOPPING
            return
        newest = state.next or state.record
        follows = newest.wants_run and not newest.has_finished
        assert self.alive
        assert follows is (state.phase in RUN_FOLLOWS)
        assert follows or state.phase is AS_ASKED[state.stop_mode]

    @invariant()
    def a_deleted_pipeline_has_stopped_only_when_all_is_said(self) -> None:
        stopped = self.state.phase is Phase.STOPPED
        deleted = self.state.record.desired == "deleted"
        assert self.ended is self.state.record.closed is (deleted and stopped)

    @invariant()
    def only_a_driver_at_work_is_blocked(self) -> None:
        if self.state.phase not in (Phase.STARTING, Phase.RUNNING, Phase.PAUSED):
            assert self.state.blocked_by is None

    def teardown(self) -> None:
        """Whatever has happened, a stop ends every story."""
        if self.state.record.desired != "deleted":
            self.command("stopped", None)
        self.time_passes(180_000)
        for _ in range(2):  # of a deleted one the driver, then the closing one
            if self.alive:
                self.driver_ends(0)
        assert self.state.phase in (Phase.CREATED, Phase.STOPPED)
        assert sorted(self.answered) == sorted(self.sent)


TestSupervision = Supervision.TestCase
TestSupervision.settings = settings(patiently, stateful_step_count=30)
