"""Any sequence of commands, crashes, ticks and times of a schedule: only legal moves, one driver,
one answer each.
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
from unit.stage_runner.supervised import LIMITS, WITH_RUN, SupervisedPipeline, sinks_of
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
    DriverEnded,
    DriverFailed,
    DriverFinished,
    DriverPaused,
    DriverProgress,
    DriverRuns,
    RecordRequested,
)
from waybill_stage_runner.core.pipelines.parallelism import rescale_record
from waybill_stage_runner.core.pipelines.scheduling import GOES_ON, with_next_time
from waybill_stage_runner.core.pipelines.states import PipelineState
from waybill_stage_runner.core.pipelines.time_limits import BY_DEFAULT
from waybill_stage_runner.core.tick import Tick

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
READS: Final = "    inputs: [orders]\n"
ENDS: Final = MANIFEST.replace(READS, f"{READS}    trigger: {{availableNow: true}}\n")
SCHEDULE: Final = "schedule: {{every: 1 minute, concurrency: {}}}\n"


class Supervision(SupervisedPipeline):
    """A driver that may say things and end at any time, and people who ask."""

    @initialize(concurrency=st.sampled_from(["forbid", "replace", None]))
    def has_a_schedule(self, concurrency: str | None) -> None:
        """Or none. The runner finds the pipeline as it was recorded."""
        text = ENDS if concurrency is None else SCHEDULE.format(concurrency) + ENDS
        scheduled = concurrency is not None
        record = replace(self.state.record, manifest=applied(text), finished=scheduled)
        self.said = with_next_time(record, None, self.now)
        assert (self.said.next_run_at is None) is (concurrency is None)
        self.state = PipelineState(record=self.said, limits=LIMITS)
        if scheduled:
            self.on(RecordRequested(record=self.said, command=None, written=True))

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
        if holds is not None and desired != "deleted":
            had = {sink.name: sink for sink in before.stages[0].sinks}
            generation = before.generation + 1
            kept = tuple(had.get(name, make_sink(name, since=generation)) for name in holds)
            stages = (make_stage(sinks=kept),)
            record = replace(record, generation=generation, stages=stages, finished=False)
        self.sent.append(f"c{len(self.sent)}")
        record = with_next_time(record, before, self.now)
        self.on(RecordRequested(record=record, command=make_command(action, id=self.sent[-1])))

    @precondition(lambda self: self.state.record.desired != "deleted")
    @rule(body=st.sampled_from(WAYS_TO_END))
    def end_run(self, body: Restart | Stop) -> None:
        """In any mode: whether it is refused is decided before."""
        before = self.state.record
        goes_on: Desired = "paused" if before.desired == "paused" else "running"
        desired = goes_on if isinstance(body, Restart) else "stopped"
        record = with_next_time(replace(before, desired=desired, finished=False), before, self.now)
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
    @rule(of=st.integers(0, 3))
    def driver_reports_an_order(self, of: int) -> None:
        """Report that batches begin or not, as the newest order says or an earlier one."""
        order = max(len(self.orders) - of, 0)
        paused = self.orders[order - 1].paused if order else self.starts_paused
        self.on(DriverPaused(order=order) if paused else DriverRuns())

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

    @precondition(lambda self: self.alive and not self.closing)
    @rule()
    def driver_finishes(self) -> None:
        self.on(DriverFinished())

    @precondition(lambda self: self.alive)
    @rule(exit_code=st.sampled_from([0, 137]))
    def driver_ends(self, exit_code: int) -> None:
        self.alive = False
        if self.closing and exit_code == 0:
            self.closed |= sinks_of(self.closing)
        self.on(DriverEnded(exit_code=exit_code))

    @rule(milliseconds=st.sampled_from([1, 500, 60_000, 180_000]))
    def time_passes(self, milliseconds: int) -> None:
        self.now += milliseconds
        before = self.state.record.next_run_at
        self.on(Tick(at=self.now))
        if self.state.phase in GOES_ON or self.state.phase is Phase.FINISHED:
            assert before is None or self.state.record.next_run_at not in range(self.now + 1)

    @invariant()
    def knows_whether_a_driver_lives(self) -> None:
        assert self.state.driver is self.alive

    @invariant()
    def what_is_in_force_was_said(self) -> None:
        assert replace(self.state.record, closed=False, run=self.said.run) == self.said

    @invariant()
    def no_command_is_answered_twice_or_forgotten(self) -> None:
        pending = [command.id for command in self.state.pending]
        assert len({command.body for command in self.state.pending}) <= 1, "one was superseded"
        assert sorted(self.answered + pending) == sorted(self.sent)

    @invariant()
    def nobody_waits_where_nothing_moves(self) -> None:
        if self.state.phase in (Phase.STOPPED, Phase.FAILED) or self.state.is_as_desired:
            assert not self.state.pending or self.awaits_pause()

    def awaits_pause(self) -> bool:
        """A pause that is asked for again is done when the driver reports the newest order."""
        return self.state.phase is Phase.PAUSED and bool(self.orders)

    @invariant()
    def only_a_run_that_has_finished_rests_as_finished(self) -> None:
        assert (self.state.phase is Phase.FINISHED) <= self.state.record.has_finished
        assert not (self.state.record.has_finished and self.alive and not self.closing)

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
    def runs_are_numbered(self) -> None:
        assert self.state.record.run == self.runs

    @invariant()
    def paused_is_what_the_newest_order_says(self) -> None:
        if self.state.phase is Phase.PAUSED and not self.state.pending:
            assert self.state.record.desired == "paused"
            assert self.orders[-1].paused if self.orders else self.starts_paused

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
