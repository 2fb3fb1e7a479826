"""The world around `decide` of one pipeline: what is true of its driver, and what may be asked."""

from typing import Final

from hypothesis.stateful import (
    RuleBasedStateMachine,
)

from builders import NOW, make_record
from waybill_shared.contract.commands import StopMode
from waybill_shared.contract.events import PipelineRecord, StageDefinition
from waybill_shared.contract.lifecycle import MOVES, STOPS, Phase
from waybill_stage_runner.core.pipelines.actions import (
    Answer,
    DumpThreads,
    PauseDriver,
    PipelineAction,
    ReportPhase,
    ReportSkipped,
    SendHeartbeat,
    StartDriver,
    StartStages,
    StopDriver,
    WriteLastDefinition,
    WriteRecord,
)
from waybill_stage_runner.core.pipelines.events import (
    DriverBlocked,
    DriverEnded,
    DriverStagesStarted,
    DriverStageStopped,
    Event,
)
from waybill_stage_runner.core.pipelines.parallelism import CoreLimits
from waybill_stage_runner.core.pipelines.scheduling import GOES_ON
from waybill_stage_runner.core.pipelines.states import PipelineState
from waybill_stage_runner.core.pipelines.stopped_stages import is_all_stopped
from waybill_stage_runner.core.pipelines.supervision import decide
from waybill_stage_runner.core.tick import Tick

WITH_RUN: Final = ("running", "paused")
LIMITS: Final = CoreLimits(usual=2, most=3)


class SupervisedPipeline(RuleBasedStateMachine):
    """Asserts of each action that it may be asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.state = PipelineState(record=make_record())
        self.now = NOW
        self.alive = self.ended = False
        self.ordered: StopMode | None = None
        self.orders: list[PauseDriver] = []
        self.stage_orders = 0
        self.closing: tuple[StageDefinition, ...] = ()
        self.said = self.state.record
        self.closed: set[tuple[str, str, int]] = set()
        self.sent: list[str] = []
        self.runs = self.parallelism = 0
        self.starts_paused = False
        self.answered: list[str] = []
        self.dumped = False

    def on(self, event: Event) -> None:
        phase = self.state.phase
        self.state, actions = decide(self.state, event, self.now)
        for action in actions:
            if isinstance(action, ReportPhase):
                self.reports(action, phase)
                phase = self.state.phase
            else:
                self.does(action, event, phase)
        assert phase is self.state.phase, "a phase changed without a word"

    def reports(self, action: ReportPhase, phase: Phase) -> None:
        assert action.phase_from is phase
        legal = {row.target for (at, _), row in MOVES.items() if at is phase}
        assert self.state.phase in legal | (STOPS & {phase}), "a stop may become a stronger one"
        if action.recorded:
            self.says(self.state.record)

    def does(self, action: PipelineAction, event: Event, phase: Phase) -> None:
        match action:
            case StartDriver(closing=closing):
                assert not self.alive
                self.starts(closing)
            case StopDriver() | PauseDriver() | DumpThreads() | StartStages():
                assert self.alive
                self.orders_driver(action)
            case ReportSkipped():
                assert phase in GOES_ON
                self.says(self.state.record)
            case WriteRecord():
                self.says(self.state.record)
            case SendHeartbeat():
                kinds = DriverBlocked | DriverStageStopped | DriverStagesStarted | Tick
                known = isinstance(event, kinds)
                assert known or self.state.record.has_finished
            case WriteLastDefinition():
                assert not self.ended
                assert not self.alive
                assert event != DriverEnded(exit_code=0) or sinks(self.said) <= self.closed
                self.ended = True
            case Answer(command=command):
                self.answered.append(command.id)

    def orders_driver(self, action: StopDriver | PauseDriver | DumpThreads | StartStages) -> None:
        match action:
            case StopDriver(mode=mode):
                stronger = self.ordered is None or mode.is_stronger_than(self.ordered)
                assert stronger or mode is StopMode.FORCE, "a second SIGTERM ends it at once"
                self.ordered = self.ordered if mode is StopMode.FORCE else mode
            case PauseDriver():
                self.orders.append(action)
                assert action.order == len(self.orders)
            case StartStages(stages=stages, order=order):
                stopped = {each.stage for each in self.state.record.stopped_stages}
                assert stages
                assert not stopped & set(stages)
                self.stage_orders += 1
                assert order == self.stage_orders
            case DumpThreads():
                assert not self.dumped
                self.dumped = True

    def starts(self, closing: tuple[StageDefinition, ...]) -> None:
        assert (not closing) <= (self.state.record.desired in WITH_RUN)
        assert closing or not is_all_stopped(self.state.record)
        self.alive, self.closing, self.ordered = True, closing, None
        paused = self.state.record.desired == "paused"
        self.orders, self.starts_paused = [], paused
        self.stage_orders = 0
        self.dumped = False
        if not closing:
            self.runs += 1
            self.parallelism = self.state.planned_parallelism
            self.closed.clear()

    def says(self, record: PipelineRecord) -> None:
        """Nothing goes before nobody writes there any more, and all that it holds is told."""
        goes = sinks(self.said) - sinks(record)
        assert goes <= self.closed
        assert not goes or not self.alive
        self.said = record


def sinks(record: PipelineRecord) -> set[tuple[str, str, int]]:
    return sinks_of(record.stages)


def sinks_of(stages: tuple[StageDefinition, ...]) -> set[tuple[str, str, int]]:
    return {(stage.name, k.name, k.since) for stage in stages for k in stage.sinks}
