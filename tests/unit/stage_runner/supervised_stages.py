"""A supervised pipeline with two stages, which may stop by themselves while its driver goes on."""

from dataclasses import replace
from typing import Final

from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from builders import MANIFEST, make_record, make_sink, make_stage
from message_builders import make_command
from unit.stage_runner.supervised import SupervisedPipeline, sinks_of
from waybill_shared.contract.events import Desired
from waybill_shared.contract.lifecycle import STOPS, Phase
from waybill_shared.contract.lifecycle_events import LifecycleError
from waybill_stage_runner.core.pipelines.events import (
    DriverEnded,
    DriverFinished,
    DriverPaused,
    DriverRuns,
    DriverStagesStarted,
    DriverStageStopped,
    RecordRequested,
)
from waybill_stage_runner.core.pipelines.scheduling import GOES_ON, with_next_time
from waybill_stage_runner.core.pipelines.states import PipelineState
from waybill_stage_runner.core.tick import Tick

READS: Final = "    inputs: [orders]\n"
ENDS: Final = MANIFEST.replace(READS, f"{READS}    trigger: {{availableNow: true}}\n")
OTHER: Final = "load"
STAGES: Final = ("enrich", OTHER)


class SupervisedStages(SupervisedPipeline):
    """What its driver may do and say, what starts its stages, and what is always true."""

    def __init__(self) -> None:
        super().__init__()
        stages = (make_stage(), make_stage(OTHER, sinks=(make_sink("other"),)))
        self.state = PipelineState(record=make_record(stages=stages))

    @property
    def ends(self) -> bool:
        return self.state.record.manifest.model.ends

    @precondition(lambda self: self.alive and not self.closing)
    @rule(stages=st.sampled_from([STAGES[:1], STAGES[1:], STAGES]))
    def stages_stop(self, stages: tuple[str, ...]) -> None:
        """By themselves, and the driver goes on. Where its run is to end, that counts no more."""
        before = self.state
        for stage in stages:
            error = LifecycleError(
                domain="user", message="too many", hint="", stage=stage, retryable=False
            )
            self.on(DriverStageStopped(error=error, put_aside=1, at=self.now))
        counts = before.phase not in STOPS
        assert stopped_in(self.state) - stopped_in(before) <= {*stages}
        assert stopped_in(self.state).issuperset(stages if counts else stopped_in(before))

    @precondition(lambda self: self.state.record.stopped_stages)
    @rule(names=st.sampled_from([STAGES[:1], STAGES[1:], STAGES]))
    def stages_are_to_start(self, names: tuple[str, ...]) -> None:
        """By a command; what is paused stays so."""
        before = self.state.record
        if before.desired == "deleted":
            return
        left = tuple(each for each in before.stopped_stages if each.stage not in names)
        desired: Desired = "paused" if before.desired == "paused" else "running"
        record = replace(before, desired=desired, finished=False, stopped_stages=left)
        self.sent.append(f"c{len(self.sent)}")
        record = with_next_time(record, before, self.now)
        self.on(RecordRequested(record=record, command=make_command("start", id=self.sent[-1])))

    @precondition(lambda self: self.alive and self.stage_orders)
    @rule(of=st.integers(0, 1))
    def driver_has_started_stages(self, of: int) -> None:
        """By the newest order, or an earlier one: then the newest is still to come."""
        starting = self.state.starting
        self.on(DriverStagesStarted(order=self.stage_orders - of))
        assert self.state.starting == (starting if of else ())

    @precondition(lambda self: self.alive)
    @rule(of=st.integers(0, 3))
    def driver_reports_an_order(self, of: int) -> None:
        """Report that batches begin or not, as the newest order says or an earlier one."""
        order = max(len(self.orders) - of, 0)
        paused = self.orders[order - 1].paused if order else self.starts_paused
        self.on(DriverPaused(order=order) if paused else DriverRuns())

    @precondition(lambda self: self.alive and not self.closing and self.ends)
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
    def stages_are_started_only_in_a_run_that_goes_on(self) -> None:
        if self.state.starting:
            assert self.alive
            assert not self.ends

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
        assert not (self.state.phase is Phase.FINISHED and self.state.record.stopped_stages)
        assert not (self.state.record.has_finished and self.alive and not self.closing)

    @invariant()
    def runs_are_numbered(self) -> None:
        assert self.state.record.run == self.runs

    @invariant()
    def paused_is_what_the_newest_order_says(self) -> None:
        if self.state.phase is Phase.PAUSED and not self.state.pending:
            assert self.state.record.desired == "paused"
            assert self.orders[-1].paused if self.orders else self.starts_paused


def stopped_in(state: PipelineState) -> set[str]:
    return {each.stage for each in state.record.stopped_stages}
