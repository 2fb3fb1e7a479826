"""Any sequence of commands, crashes and ticks: only legal moves, one driver, one answer each."""

from dataclasses import replace
from typing import Literal

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from builders import NOW, make_command, make_problem, make_record
from shared.events import LifecycleError
from shared.lifecycle import Phase, allowed
from stage_runner.core.moves import (
    Announce,
    Answer,
    Beat,
    DriverBlocked,
    DriverEnded,
    DriverFailed,
    DriverRuns,
    EndFacts,
    Event,
    StartDriver,
    StopDriver,
    Tick,
    Wanted,
)
from stage_runner.core.supervision import PipelineState, decide
from strategies import patiently


class Supervision(RuleBasedStateMachine):
    """The world around `decide`: a driver that may say things and end at any time."""

    def __init__(self) -> None:
        super().__init__()
        self.state = PipelineState(record=make_record())
        self.now = NOW
        self.alive = self.closing = self.told_to_stop = self.ended = False
        self.sent: list[str] = []
        self.answered: list[str] = []

    def on(self, event: Event) -> None:
        phase = self.state.phase
        self.state, actions = decide(self.state, event, self.now)
        for action in actions:
            match action:
                case StartDriver(closing=closing):
                    assert not self.alive
                    assert closing is (self.state.record.desired == "deleted")
                    self.alive, self.closing, self.told_to_stop = True, closing, False
                case StopDriver(force=force):
                    assert self.alive
                    assert force or not self.told_to_stop, "a second SIGTERM ends it at once"
                    self.told_to_stop |= not force
                case Announce(phase_from=phase_from):
                    assert phase_from is phase
                    assert allowed(phase, self.state.phase)
                    phase = self.state.phase
                case Beat():
                    assert isinstance(event, DriverBlocked)
                case EndFacts():
                    assert not self.ended
                    assert self.closing and not self.alive, "its sinks were asked before"
                    self.ended = True
                case Answer(command=command):
                    self.answered.append(command.id)
        assert phase is self.state.phase, "a phase changed without a word"

    @rule(desired=st.sampled_from(["running", "stopped", "deleted"]), changes=st.booleans())
    def command(self, desired: Literal["running", "stopped", "deleted"], changes: bool) -> None:
        if self.state.record.desired == "deleted":
            return
        generation = self.state.record.generation + changes
        record = replace(make_record(generation=generation), desired=desired)
        self.sent.append(f"c{len(self.sent)}")
        self.on(Wanted(record=record, command=make_command(id=self.sent[-1])))

    @precondition(lambda self: self.alive)
    @rule()
    def driver_runs(self) -> None:
        self.on(DriverRuns())

    @precondition(lambda self: self.alive)
    @rule(blocked_by=st.sampled_from([None, "blocked_by_open_transaction"]))
    def driver_is_blocked(self, blocked_by: str | None) -> None:
        self.on(DriverBlocked(blocked_by=blocked_by))

    @precondition(lambda self: self.alive)
    @rule(retryable=st.booleans(), told=st.booleans())
    def driver_fails(self, retryable: bool, told: bool) -> None:
        if told:
            error = LifecycleError(
                domain="external", message="away", hint="", stage=None, retryable=retryable
            )
            self.on(DriverFailed(problems=(make_problem(),), error=error))
        self.driver_ends(1)

    @precondition(lambda self: self.alive)
    @rule(exit_code=st.sampled_from([0, 137]))
    def driver_ends(self, exit_code: int) -> None:
        self.alive = False
        self.on(DriverEnded(exit_code=exit_code))

    @rule(milliseconds=st.sampled_from([1, 500, 60_000, 180_000]))
    def time_passes(self, milliseconds: int) -> None:
        self.now += milliseconds
        self.on(Tick())

    @invariant()
    def knows_whether_a_driver_lives(self) -> None:
        assert self.state.driver is self.alive

    @invariant()
    def no_command_is_answered_twice_or_forgotten(self) -> None:
        pending = [command.id for command in self.state.pending]
        assert len(pending) <= 1
        assert sorted(self.answered + pending) == sorted(self.sent)

    @invariant()
    def nobody_waits_where_nothing_moves(self) -> None:
        if self.state.phase in (Phase.RUNNING, Phase.STOPPED, Phase.FAILED):
            assert not self.state.pending

    @invariant()
    def phase_and_wish_belong_together(self) -> None:
        if self.state.record.desired != "running":
            assert self.state.phase in (Phase.CREATED, Phase.STOPPING, Phase.STOPPED)
            waits = self.state.closing and self.state.next_at is not None
            assert (self.alive or waits) is (self.state.phase is Phase.STOPPING)

    @invariant()
    def a_deleted_pipeline_has_stopped_only_when_all_is_said(self) -> None:
        stopped = self.state.phase is Phase.STOPPED
        deleted = self.state.record.desired == "deleted"
        assert self.ended is self.state.record.closed is (deleted and stopped)

    @invariant()
    def only_a_driver_at_work_is_blocked(self) -> None:
        if self.state.phase not in (Phase.STARTING, Phase.RUNNING):
            assert self.state.blocked_by is None

    def teardown(self) -> None:
        """Whatever has happened, a stop ends every story."""
        if self.state.record.desired != "deleted":
            self.command("stopped", changes=False)
        self.time_passes(180_000)
        for _ in range(2):  # of a deleted one the driver, then the closing one
            if self.alive:
                self.driver_ends(0)
        assert self.state.phase in (Phase.CREATED, Phase.STOPPED)
        assert sorted(self.answered) == sorted(self.sent)


TestSupervision = Supervision.TestCase
TestSupervision.settings = settings(patiently, stateful_step_count=30)
