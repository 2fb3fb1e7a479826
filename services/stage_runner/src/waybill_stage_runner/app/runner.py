"""Runs the pipelines of one commands partition: carries out commands and supervises drivers.

The loop calls `handle` with a command. It may be queued for a check, and is handled again when it
is `freed`. Then it becomes a record or is refused, and `supervision` decides what follows. `act`
carries out what was decided, in order, and `hear` passes on reports of drivers.

Promise: what is recorded as wanted is brought about, through any number of restarts. Each command
is answered once it is true or known to be impossible. A refused command leaves nothing written.
"""

import json
import logging
from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from typing import assert_never

from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.contract.events import (
    Command,
    Definition,
    LifecycleError,
    PipelineRecord,
)
from waybill_shared.contract.manifest.model import Manifest
from waybill_shared.contract.manifest.reading import parse_manifest, place
from waybill_shared.contract.operations import COMPARED_WITH, DRY_RUN, LINES, SINK, notes_in
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.words import Action, OperationState
from waybill_shared.process.clock import Clocks
from waybill_stage_runner.app.change_preview import compare
from waybill_stage_runner.app.checks import Admission, Checks, failed
from waybill_stage_runner.app.measuring import count_answer, count_start, forget, measure
from waybill_stage_runner.app.ports import Checked, Drivers, Publisher, Topics
from waybill_stage_runner.core.pipelines.actions import (
    Answer,
    Event,
    PipelineAction,
    RecordRequested,
    ReportMaintenance,
    ReportPhase,
    RunEvent,
    SendHeartbeat,
    StartDriver,
    StopDriver,
    Tick,
    WriteLastDefinition,
    WriteRecord,
)
from waybill_stage_runner.core.pipelines.compatibility import refuse_recreated
from waybill_stage_runner.core.pipelines.maintenance import maintenance_reports
from waybill_stage_runner.core.pipelines.planning import as_planned, define, topics_of
from waybill_stage_runner.core.pipelines.records import (
    beginning,
    changed,
    created,
    refuse_gone,
    restarted,
)
from waybill_stage_runner.core.pipelines.states import PipelineState
from waybill_stage_runner.core.pipelines.supervision import decide

logger = logging.getLogger(__name__)


class Runner:
    def __init__(
        self,
        topics: Topics,
        publisher: Publisher,
        drivers: Drivers,
        clock: Clocks,
        *,
        admission: Admission | None = None,
    ) -> None:
        """Keep the ports. `admission` limits checks; runners that share drivers share it."""
        self._topics = topics
        self._publisher = publisher
        self._drivers = drivers
        self._clock = clock
        self._states: dict[str, PipelineState] = {}
        self._deleted: dict[str, int] = {}
        self._epochs: dict[str, int] = {}
        self._told: frozenset[str] = frozenset()
        self._checks = Checks(drivers, clock, admission or Admission())
        self._todo: deque[tuple[PipelineState | None, PipelineAction]] = deque()

    @property
    def states(self) -> Iterable[PipelineState]:
        return self._states.values()

    def adopt(self, record: PipelineRecord) -> None:
        """Accept a pipeline as it was recorded before this runner owned its partition."""
        uid = record.pipeline_uid
        if record.closed:
            self._deleted[uid] = record.commanded_at
            return
        self._states[uid] = PipelineState(record=record)
        self._apply(uid, RecordRequested(record=record, command=None, said=True))

    def adopt_answered(self, commands: Iterable[str]) -> None:
        """Accept the ids of answered commands with open offsets: they are not carried out again."""
        self._told = frozenset(commands)

    def release(self) -> None:
        """Stop all work, because another runner owns these pipelines from now on."""
        for pipeline_uid in self._states:
            self._drivers.stop(pipeline_uid, force=True)
        self._checks.clear()
        self._states.clear()
        self._epochs.clear()
        self._todo.clear()

    def handle(self, command: Command, offset: int) -> None:
        """Carry out a command, or have it checked first, after which `freed` returns it.

        A command that is read again after a restart changes nothing. Raises Retryable while nothing
        of the command is decided. From then on `act` carries it out, however long that needs.
        """
        if command.action is Action.LOGS:
            self._answer(self._log_of(command))
            return
        if self._checks.queue_if_busy(command, offset):
            return
        if self._to_check(command, offset):
            compared = self._compared_with(command)
            if command.action is Action.MAINTAIN:
                refusal = self._checks.begin_maintenance(command, offset, compared)
            else:
                before = None if compared is None else compared.manifest
                refusal = self._checks.begin(command, offset, before)
            if refusal is not None:
                self._answer(refusal)
            return
        self._carry_out(command, offset)
        self._checks.leave(command)

    def freed(self) -> tuple[int, Command] | None:
        """Return a command that has waited for a check and is to be handled now."""
        waiting = self._checks.free()
        return None if waiting is None else (waiting.offset, waiting.command)

    def checked(self, found: Checked) -> None:
        """Accept the result of a command's check. Results for other runners are ignored."""
        answer = self._checks.end(found)
        if answer is not None:
            self._report_maintenance(answer.command, found)
            self._answer(answer)

    def _report_maintenance(self, command: Command, found: Checked) -> None:
        """Report what a maintenance did, if the pipeline still exists."""
        record = None if command.action is not Action.MAINTAIN else self._compared_with(command)
        if record is None or command.options.get(DRY_RUN) == "true":
            return
        state = self._states[record.pipeline_uid]
        for done in maintenance_reports(record, command.options[SINK], found.tasks):
            self._todo.append((state, ReportMaintenance(maintenance=done)))

    def _to_check(self, command: Command, offset: int) -> bool:
        """Return True if a check comes first: of a new manifest, or of what changes no pipeline."""
        if command.action in (Action.VALIDATE, Action.MAINTAIN):
            return command.id not in self._told and self._checks.found(command) is None
        if command.action is not Action.APPLY or self._checks.passed(command):
            return False
        state = self._states.get(command.pipeline_uid)
        before = None if state is None else state.record
        if self._is_over(command, offset) or command.manifest is None:
            return False
        return before is None or command.manifest != before.manifest

    def _is_over(self, command: Command, offset: int) -> bool:
        """Return True if the command was carried out before or is too late: it starts nothing."""
        state = self._states.get(command.pipeline_uid)
        if command.id in self._told or command.pipeline_uid in self._deleted:
            return True
        return state is not None and (
            offset <= state.record.commanded_at or state.record.desired == "deleted"
        )

    def _carry_out(self, command: Command, offset: int) -> None:
        uid = command.pipeline_uid
        if command.id in self._told:
            return
        if command.action is Action.VALIDATE:
            self._answer(self._compared(command))
            return
        if self._deleted.get(uid) == offset:
            self._answer(Answer(command=command, state=OperationState.DONE))
            return
        state = self._states.get(uid)
        before = state.record if state is not None else None
        done_to = before.commanded_at if before is not None else self._deleted.get(uid, -1)
        if offset < done_to:
            return  # a later command has overtaken it: it was answered then, or nobody waits
        again = before is not None and offset == done_to
        try:
            record = before if again else self._asked_for(command, before)
        except UserError as error:
            self._answer(failed(command, error.problems, error.slug))
            return
        assert record is not None
        record = replace(record, commanded_at=offset)
        self._states.setdefault(uid, PipelineState(record=record))
        self._apply(uid, RecordRequested(record=record, command=command, said=again))

    def _compared_with(self, command: Command) -> PipelineRecord | None:
        """Return the pipeline that the command is about; None if this runner does not have it."""
        state = self._states.get(command.options.get(COMPARED_WITH, ""))
        if state is None or state.record.tenant != command.tenant:
            return None
        return None if state.record.desired == "deleted" else state.record

    def _log_of(self, command: Command) -> Answer:
        record = self._compared_with(command)
        if record is None:
            problem = Problem(message=f"there is no pipeline {command.pipeline} any more")
            return failed(command, (problem,), Slug.PIPELINE_GONE)
        lines = self._drivers.newest_log(record.pipeline_uid, int(command.options[LINES]))
        told = json.dumps({"pipeline": record.name, "lines": [*lines]}, ensure_ascii=False)
        return Answer(command=command, state=OperationState.DONE, result=told)

    def _compared(self, command: Command) -> Answer:
        found = self._checks.found(command)
        assert found is not None
        result = compare(command, found, self._compared_with(command), self._topics)
        return Answer(command=command, state=OperationState.DONE, result=result)

    def hear(self, pipeline_uid: str, epoch: int, event: RunEvent) -> None:
        """Accept an event of the driver with that lease. Events of earlier drivers are ignored."""
        if self._epochs.get(pipeline_uid) == epoch:
            self._apply(pipeline_uid, event)

    def refuse(self, command: Command, reason: str) -> None:
        """Refuse a command that `handle` could not decide in time. Nothing of it is written."""
        self._checks.leave(command)
        problem = Problem(message=reason, hint="send the command again when that is mended")
        self._answer(failed(command, (problem,), Slug.COMMAND_GIVEN_UP))

    def tick(self) -> None:
        for uid in list(self._states):
            self._apply(uid, Tick())

    def act(self) -> None:
        """Carry out what was decided, in order; what raises Retryable stays first in the queue."""
        while self._todo:
            self._act(*self._todo[0])
            self._todo.popleft()

    def beat(self) -> None:
        if self._states:
            self._publisher.beat(tuple(self._states.values()))

    @property
    def busy(self) -> bool:
        """True if something is decided and not yet carried out."""
        return bool(self._todo)

    def unanswered(self) -> set[str]:
        """Return the ids of commands still to be answered. Their offsets must not be committed."""
        pending = {command.id for state in self._states.values() for command in state.pending}
        unsaid = {action.command.id for _, action in self._todo if isinstance(action, Answer)}
        return pending | unsaid | set(self._checks.waiting())

    def _asked_for(self, command: Command, before: PipelineRecord | None) -> PipelineRecord:
        now = self._clock.now_ms()
        refuse_gone(command, before, deleted=command.pipeline_uid in self._deleted)
        if command.action is Action.APPLY:
            return self._applied(command, before, now)
        assert before is not None
        assert command.action is not Action.VALIDATE, "it is answered when it is checked"
        assert command.action is not Action.MAINTAIN, "it is answered when it is done"
        assert command.action is not Action.LOGS, "it is answered at once"
        match command.action:
            case Action.RESTART:
                return self._restarted(command, before, now)
            case Action.START:
                return replace(before, desired="running", updated_at=now)
            case Action.STOP:
                return replace(before, desired="stopped", updated_at=now)
            case Action.DELETE:
                return replace(before, desired="deleted", updated_at=now)
            case _:
                assert_never(command.action)

    def _applied(self, command: Command, before: PipelineRecord | None, now: int) -> PipelineRecord:
        """Return the record after `apply`, checked before topics are created: a refusal makes none.

        It is checked again afterwards, because a topic may be created again at any moment.
        """
        assert command.manifest is not None
        manifest = parse_manifest(command.manifest)
        plans = topics_of(manifest)
        if before is None:
            stages = define(manifest, self._topics.prepare(plans), before)
            return created(command, manifest.state, stages, now)
        present = self._topics.ids(plans)
        try:
            planned = define(manifest, as_planned(plans, present), before)
            changed(before, command, manifest.state, planned, now)
            stages = define(manifest, self._topics.prepare(plans), before)
            return changed(before, command, manifest.state, stages, now)
        except UserError as error:
            raise UserError(place(error.problems, command.manifest), error.slug) from error

    def _restarted(self, command: Command, before: PipelineRecord, now: int) -> PipelineRecord:
        """Return the record after a restart, checked before and after topics are created."""
        start_from = beginning(command)
        manifest = parse_manifest(before.manifest)
        plans = topics_of(manifest, start_from)
        if start_from is None:
            refuse_recreated(before, self._topics.ids(plans))
        topics = self._topics.prepare(plans)
        if start_from is None:
            refuse_recreated(before, {name: topic.topic_id for name, topic in topics.items()})
        return restarted(before, define(manifest, topics, before), now)

    def _apply(self, pipeline_uid: str, event: Event) -> None:
        state = self._states.get(pipeline_uid)
        if state is None:
            return
        after, actions = decide(state, event, self._clock.monotonic_ms())
        measure(state, after)
        self._states[pipeline_uid] = after
        self._todo.extend((after, action) for action in actions)

    def _answer(self, answer: Answer) -> None:
        self._todo.append((self._states.get(answer.command.pipeline_uid), answer))

    def _act(self, state: PipelineState | None, action: PipelineAction) -> None:
        if isinstance(action, Answer):
            self._publish_answer(state, action)
            return
        assert state is not None
        record = state.record
        match action:
            case WriteRecord():
                # The last definition is written after its sinks were closed: `WriteLastDefinition`.
                definition = None if record.desired == "deleted" else _definition(record)
                self._publisher.change(record, definition)
            case StartDriver(closing=closing):
                self._start_driver(state, closing)
            case StopDriver(force=force):
                self._drivers.stop(record.pipeline_uid, force=force)
            case ReportPhase(phase_from=phase_from):
                logger.info(
                    "phase changed",
                    extra={"pipeline": record.name, "phase": state.phase, "reason": state.reason},
                )
                self._publisher.phase(state, phase_from)
            case SendHeartbeat():
                self._publisher.blocked(state)
            case ReportMaintenance(maintenance=maintenance):
                self._publisher.maintenance(state, maintenance)
            case WriteLastDefinition(error=error):
                self._end_facts(record, error)
            case _:
                assert_never(action)

    def _start_driver(self, state: PipelineState, closing: PipelineRecord | None) -> None:
        record = state.record
        lease = self._publisher.claim(record)
        self._epochs[record.pipeline_uid] = lease.epoch
        stages = closing.stages if closing is not None else ()
        self._drivers.start(record, lease, urgent=bool(state.pending), closing=stages)
        reason = "closing" if closing is not None else state.reason.split(" ")[0]
        count_start(record.name, reason)

    def _end_facts(self, record: PipelineRecord, error: LifecycleError | None) -> None:
        """Write the last definition of a deleted pipeline. Nothing of it is written after that."""
        self._publisher.change(record, _definition(record))
        if error is not None:
            logger.error(
                "deleted, but what its sinks hold may not have been reported",
                extra={"pipeline": record.name, "reason": error.message},
            )
        self._deleted[record.pipeline_uid] = record.commanded_at
        forget(record.name)
        self._epochs.pop(record.pipeline_uid, None)
        del self._states[record.pipeline_uid]

    def _publish_answer(self, state: PipelineState | None, answer: Answer) -> None:
        command = answer.command
        generation = state.record.generation if state is not None else None
        self._publisher.answer(answer, generation, _warnings(command))
        count_answer(answer)


def _definition(record: PipelineRecord) -> Definition:
    return Definition(name=record.name, deleted=record.desired == "deleted", stages=record.stages)


def _warnings(command: Command) -> tuple[str, ...]:
    if command.manifest is None:
        return ()
    try:
        manifest: Manifest = parse_manifest(command.manifest)
    except UserError:
        return ()
    return (*manifest.warnings(), *notes_in(command.options))
