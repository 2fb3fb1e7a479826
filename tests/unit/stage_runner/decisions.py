"""A pipeline to which one thing happens after another, and what the runner decides each time."""

from builders import NOW
from waybill_shared.contract.events import PipelineRecord
from waybill_stage_runner.core.pipelines.actions import Event, PipelineAction
from waybill_stage_runner.core.pipelines.states import PipelineState
from waybill_stage_runner.core.pipelines.supervision import decide
from waybill_stage_runner.core.tick import Tick


class Decisions:
    """`actions` are those of the last event."""

    def __init__(self, record: PipelineRecord, *events: Event) -> None:
        self.state = PipelineState(record=record)
        self.now = NOW
        self.actions: tuple[PipelineAction, ...] = ()
        self.on(*events)

    def on(self, *events: Event) -> tuple[PipelineAction, ...]:
        for event in events:
            self.state, self.actions = decide(self.state, event, self.now)
        return self.actions

    def after(self, milliseconds: int) -> tuple[PipelineAction, ...]:
        self.now += milliseconds
        return self.on(Tick())
