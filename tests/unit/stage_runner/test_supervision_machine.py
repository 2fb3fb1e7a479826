"""Any sequence of commands, crashes and ticks: only legal moves, one driver, one answer each."""

from dataclasses import replace
from typing import Literal

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from builders import NOW, make_command, make_problem, make_record
from shared.events import LifecycleError
from shared.lifecycle import Phase, allowed
from stage_runner.core.supervision import (
    Announce,
    Answer,
    DriverEnded,
    DriverFailed,
    DriverRuns,
    Event,
    PipelineState,
    StartDriver,
    StopDriver,
    Tick,
    Wanted,
    decide,
)
from strategies import patiently


class Supervision(RuleBasedStateMachine):
    """The world around `decide`: a driver that may say things and end at any time."""

    def __init__(self) -> None:
        super().__init__()
        self.state = PipelineState(record=make_record())
        self.now = NOW
        self.alive = self.told_to_stop = False
        self.sent: list[str] = []
        self.answered: list[str] = []

    def on(self, event: Event) -> None:
        phase = self.state.phase
        self.state, actions = decide(self.state, event, self.now)
        for action in actions:
            match action:
                case StartDriver():
                    assert not self.alive
                    self.alive, self.told_to_stop = True, False
                case StopDriver():
                    assert self.alive
                    self.told_to_stop = True
                case Announce(phase_from=phase_from):
                    assert phase_from is phase
                    assert allowed(phase, self.state.phase)
                    phase = self.state.phase
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
            assert self.alive is (self.state.phase is Phase.STOPPING)

    def teardown(self) -> None:
        """Whatever has happened, a stop ends every story."""
        if self.state.record.desired != "deleted":
            self.command("stopped", changes=False)
        if self.alive:
            self.driver_ends(0)
        assert self.state.phase in (Phase.CREATED, Phase.STOPPED)
        assert sorted(self.answered) == sorted(self.sent)


TestSupervision = Supervision.TestCase
TestSupervision.settings = settings(patiently, stateful_step_count=30)
