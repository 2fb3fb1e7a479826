"""A pipeline to which one thing happens after another, and what the runner decides each time."""

from builders import NOW
from message_builders import make_command
from waybill_shared.contract.events import PipelineRecord
from waybill_stage_runner.core.pipelines.actions import Answer, PipelineAction
from waybill_stage_runner.core.pipelines.events import Event, RecordRequested
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

    def want(
        self, record: PipelineRecord, command: str | None = None, action: str = "start"
    ) -> tuple[PipelineAction, ...]:
        """As the command of this id asks; without one it is written already."""
        wanted = make_command(action, id=command) if command is not None else None
        return self.on(RecordRequested(record=record, command=wanted, written=command is None))

    def answers(self) -> list[tuple[str, str]]:
        return [(a.command.id, a.state) for a in self.actions if isinstance(a, Answer)]

    def after(self, milliseconds: int) -> tuple[PipelineAction, ...]:
        self.now += milliseconds
        return self.on(Tick())
