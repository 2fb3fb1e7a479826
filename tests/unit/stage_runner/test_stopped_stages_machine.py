"""Stages of a run stop and are started, in any order: as the record says, with one answer each."""

from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from builders import MANIFEST, applied
from message_builders import make_command
from strategies import patiently
from unit.stage_runner.supervised import LIMITS
from unit.stage_runner.supervised_stages import ENDS, SupervisedStages
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.lifecycle import allowed_actions
from waybill_shared.contract.words import Action
from waybill_stage_runner.core.pipelines.events import DriverRuns, RecordRequested
from waybill_stage_runner.core.pipelines.states import PipelineState


class StoppedStages(SupervisedStages):
    """A pipeline that runs: nobody stops, changes or deletes it."""

    @initialize(text=st.sampled_from([MANIFEST, ENDS]))
    def begins(self, text: str) -> None:
        self.said = replace(self.state.record, manifest=applied(text))
        self.state = PipelineState(record=self.said, limits=LIMITS)
        self.ask("start", self.said)
        self.on(DriverRuns())

    @precondition(lambda self: bool({Action.PAUSE, Action.RESUME}.intersection(self.allowed())))
    @rule()
    def pause_or_resume(self) -> None:
        paused = self.state.record.desired == "paused"
        record = replace(self.state.record, desired="running" if paused else "paused")
        self.ask("resume" if paused else "pause", record)

    def ask(self, action: str, record: PipelineRecord) -> None:
        self.sent.append(f"c{len(self.sent)}")
        self.on(RecordRequested(record=record, command=make_command(action, id=self.sent[-1])))

    def allowed(self) -> tuple[Action, ...]:
        return allowed_actions(self.state.phase, self.state.record.desired)


TestStoppedStages = StoppedStages.TestCase
TestStoppedStages.settings = settings(patiently, max_examples=120, stateful_step_count=30)
