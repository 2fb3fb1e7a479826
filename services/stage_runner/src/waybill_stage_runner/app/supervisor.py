"""Supervises the pipelines of one commands partition: events come in, actions are carried out.

`supervision` decides what follows from each event. `act` carries it out, in order, and what raises
Retryable stays first.

Promise: what is recorded as wanted is brought about, through any number of restarts.
"""

import logging
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import assert_never

from waybill_shared.contract.commands import Apply, StopMode, Validate
from waybill_shared.contract.events import Command, Definition, PipelineRecord, StageDefinition
from waybill_shared.contract.lifecycle import Phase
from waybill_shared.contract.lifecycle_events import LifecycleError
from waybill_shared.process.clock import Clocks
from waybill_stage_runner.app.measuring import count_answer, count_start, forget, measure
from waybill_stage_runner.app.ports import Drivers, Publisher
from waybill_stage_runner.core.pipelines import actions, events
from waybill_stage_runner.core.pipelines.maintenance import maintenance_reports
from waybill_stage_runner.core.pipelines.parallelism import CoreLimits
from waybill_stage_runner.core.pipelines.states import PipelineState
from waybill_stage_runner.core.pipelines.supervision import decide
from waybill_stage_runner.core.pipelines.time_limits import TimeLimits
from waybill_stage_runner.core.tick import Tick

logger = logging.getLogger(__name__)


class PipelineSupervisor:
    def __init__(
        self,
        publisher: Publisher,
        drivers: Drivers,
        clock: Clocks,
        *,
        times: TimeLimits,
        limits: CoreLimits,
    ) -> None:
        self._times = times
        self._limits = limits
        self._publisher = publisher
        self._drivers = drivers
        self._clock = clock
        self._states: dict[str, PipelineState] = {}
        self.deleted: dict[str, int] = {}
        """The offset of the command that deleted a pipeline, by the uid of the pipeline."""
        self.reserved: dict[str, tuple[str, int]] = {}
        """For which pipeline, and which generation of it, a name was reserved, by the uid of that
        life of the name."""
        self._epochs: dict[str, int] = {}
        self._todo: deque[
            tuple[PipelineState | None, actions.PipelineAction | actions.WriteReservedName]
        ] = deque()

    @property
    def states(self) -> Iterable[PipelineState]:
        return self._states.values()

    @property
    def busy(self) -> bool:
        """True if something is decided and not yet carried out."""
        return bool(self._todo)

    def record(self, pipeline_uid: str) -> PipelineRecord | None:
        state = self._states.get(pipeline_uid)
        return None if state is None else state.record

    def phase(self, pipeline_uid: str) -> Phase:
        return self._states[pipeline_uid].phase

    def adopt(self, record: PipelineRecord) -> None:
        """Accept a pipeline as it was recorded before this runner owned its partition."""
        if record.closed:
            self._note_end(record)
        else:
            self.request(record, None, written=True)

    def request(self, record: PipelineRecord, command: Command | None, *, written: bool) -> None:
        """Bring about what the record wants. `written`: the record is in Kafka already."""
        new = PipelineState(record=record, times=self._times, limits=self._limits)
        self._states.setdefault(record.pipeline_uid, new)
        event = events.RecordRequested(record=record, command=command, written=written)
        self._apply(record.pipeline_uid, event)

    def reserve_name(self, record: PipelineRecord) -> None:
        """Write that a name is reserved. No pipeline begins with this life of it."""
        self._note_end(record)
        self._todo.append((None, actions.WriteReservedName(record=record)))

    def receive(self, pipeline_uid: str, epoch: int, event: events.RunEvent) -> None:
        """Accept an event of the driver with that lease. Events of earlier drivers are ignored."""
        if self._epochs.get(pipeline_uid) == epoch:
            if isinstance(event, events.DriverStageStopped | events.DriverEnded):
                event = replace(event, at=self._clock.now_ms())
            self._apply(pipeline_uid, event)

    def tick(self) -> None:
        tick = Tick(at=self._clock.now_ms())
        for uid in list(self._states):
            self._apply(uid, tick)

    def answer(self, answer: actions.Answer) -> None:
        self._todo.append((self._states.get(answer.command.pipeline_uid), answer))

    def report_maintenance(
        self, record: PipelineRecord, sink: str, tasks: Mapping[str, Mapping[str, int]]
    ) -> None:
        state = self._states[record.pipeline_uid]
        for done in maintenance_reports(record, sink, tasks):
            self._todo.append((state, actions.ReportMaintenance(maintenance=done)))

    def act(self) -> None:
        """Carry out what was decided, in order; what raises Retryable stays first in the queue."""
        while self._todo:
            self._act(*self._todo[0])
            self._todo.popleft()

    def beat(self) -> None:
        if self._states:
            self._publisher.beat(tuple(self._states.values()))

    def open_commands(self) -> set[str]:
        pending = {command.id for state in self._states.values() for command in state.pending}
        decided = {
            action.command.id for _, action in self._todo if isinstance(action, actions.Answer)
        }
        return pending | decided

    def release(self) -> None:
        """Stop all work, because another runner owns these pipelines from now on."""
        for pipeline_uid in self._states:
            self._drivers.stop(pipeline_uid, StopMode.FORCE)
        self._states.clear()
        self._epochs.clear()
        self._todo.clear()

    def _apply(self, pipeline_uid: str, event: events.Event) -> None:
        state = self._states.get(pipeline_uid)
        if state is None:
            return
        after, decided = decide(state, event, self._clock.monotonic_ms())
        measure(state, after)
        self._states[pipeline_uid] = after
        self._todo.extend((after, action) for action in decided)

    def _act(
        self,
        state: PipelineState | None,
        action: actions.PipelineAction | actions.WriteReservedName,
    ) -> None:
        if isinstance(action, actions.Answer):
            self._publish_answer(state, action)
            return
        if isinstance(action, actions.WriteReservedName):
            self._publisher.change(action.record, None)
            return
        assert state is not None
        record = state.record
        match action:
            case actions.WriteRecord():
                # The last definition is written after its sinks were closed.
                definition = None if record.desired == "deleted" else _definition(record)
                self._publisher.change(record, definition)
            case actions.ReportPhase() | actions.ReportSkipped():
                self._report(state, action)
            case actions.SendHeartbeat():
                self._publisher.report_blocked(state)
            case actions.ReportMaintenance(maintenance=maintenance):
                self._publisher.maintenance(state, maintenance)
            case actions.WriteLastDefinition(error=error):
                self._write_last_definition(record, error)
            case _:
                self._order(state, action)

    def _order(self, state: PipelineState, action: actions.DriverAction) -> None:
        uid = state.record.pipeline_uid
        match action:
            case actions.StartDriver(closing=closing):
                self._start_driver(state, closing)
            case actions.StopDriver(mode=mode):
                self._drivers.stop(uid, mode)
            case actions.DumpThreads():
                self._drivers.dump_threads(uid)
            case actions.PauseDriver(paused=paused, order=order):
                self._drivers.pause(uid, paused=paused, order=order)
            case actions.StartStages(stages=stages, order=order):
                self._drivers.start_stages(uid, stages, order=order)
            case _:
                assert_never(action)

    def _report(
        self, state: PipelineState, action: actions.ReportPhase | actions.ReportSkipped
    ) -> None:
        name = state.record.name
        if isinstance(action, actions.ReportSkipped):
            logger.info("no run begins", extra={"pipeline": name, "reason": action.reason})
            self._publisher.skipped(state, action.reason)
            return
        logger.info(
            "phase changed",
            extra={"pipeline": name, "phase": state.phase, "reason": state.reason},
        )
        self._publisher.phase(state, action.phase_from, recorded=action.recorded)

    def _start_driver(self, state: PipelineState, closing: tuple[StageDefinition, ...]) -> None:
        record = state.record
        lease = self._publisher.claim(record)
        self._epochs[record.pipeline_uid] = lease.epoch
        self._drivers.start(record, lease, urgent=bool(state.pending), closing=closing)
        reason = "closing" if closing else state.reason.split(" ")[0]
        count_start(record.name, reason)

    def _write_last_definition(self, record: PipelineRecord, error: LifecycleError | None) -> None:
        """Write the last definition of a deleted pipeline. Nothing of it is written after that."""
        self._publisher.change(record, _definition(record))
        if error is not None:
            logger.error(
                "deleted, but what its sinks contain may not have been reported",
                extra={"pipeline": record.name, "reason": error.message},
            )
        self._note_end(record)
        forget(record.name)
        self._epochs.pop(record.pipeline_uid, None)
        del self._states[record.pipeline_uid]

    def _note_end(self, record: PipelineRecord) -> None:
        """Note a life of a name that is over, or that was only a name."""
        self.deleted[record.pipeline_uid] = record.commanded_at
        if record.reserved_for:
            self.reserved[record.pipeline_uid] = (record.reserved_for, record.reserved_in)

    def _publish_answer(self, state: PipelineState | None, answer: actions.Answer) -> None:
        generation = state.record.generation if state is not None else None
        body = answer.command.body
        warnings = body.manifest.warnings if isinstance(body, Apply | Validate) else ()
        self._publisher.answer(answer, generation, (*warnings, *answer.warnings))
        count_answer(answer)


def _definition(record: PipelineRecord) -> Definition:
    return Definition(
        name=record.name,
        deleted=record.desired == "deleted",
        stages=record.stages,
        was=record.was,
    )
