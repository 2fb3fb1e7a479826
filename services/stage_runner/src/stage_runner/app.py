"""Runs pipelines: carries out commands, supervises drivers, and says what has happened.

Promise: what is recorded as wanted is brought about, through any number of restarts, and each
command is answered once it is true or known to be impossible.
"""

import logging
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Protocol, assert_never

from shared import metrics
from shared.clock import Clock
from shared.errors import UserError
from shared.events import Command, Definition, LifecycleError, PipelineRecord, Problem
from shared.manifest import Manifest, parse_manifest
from stage_runner.core.moves import (
    Action,
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
from stage_runner.core.planning import TopicPlan, TopicState, define, refuse_recreated, topics_of
from stage_runner.core.records import beginning, changed, created, refuse_gone, restarted
from stage_runner.core.supervision import PipelineState, decide
from stage_runner.measuring import measure, show

logger = logging.getLogger(__name__)


class Topics(Protocol):
    def ids(self, topics: Iterable[str]) -> Mapping[str, str]:
        """Of those that exist, by name. Raises Retryable."""

    def prepare(self, plans: Iterable[TopicPlan]) -> Mapping[str, TopicState]:
        """Create what is missing and say how the topics stand. Raises Retryable."""


class Publisher(Protocol):
    """Each call returns after Kafka has acknowledged; raises Retryable. May be repeated."""

    def record(self, record: PipelineRecord) -> None: ...

    def definition(self, record: PipelineRecord, body: Definition) -> None: ...

    def claim(self, record: PipelineRecord) -> int:
        """Announce that a driver is about to run; the lease's epoch."""

    def phase(self, state: PipelineState, phase_from: str | None) -> None:
        """A transition, or with `phase_from` None a heartbeat."""

    def answer(self, answer: Answer, generation: int | None, warnings: tuple[str, ...]) -> None: ...


class Drivers(Protocol):
    """Driver processes by pipeline uid. None of these waits for a driver to start or end."""

    def start(self, record: PipelineRecord, epoch: int, *, closing: bool) -> None:
        """Only after every process of an earlier driver of this pipeline is gone."""

    def stop(self, pipeline_uid: str, *, force: bool) -> None: ...


class Runner:
    def __init__(
        self, topics: Topics, publisher: Publisher, drivers: Drivers, clock: Clock
    ) -> None:
        self._topics = topics
        self._publisher = publisher
        self._drivers = drivers
        self._clock = clock
        self._states: dict[str, PipelineState] = {}
        self._deleted: dict[str, int] = {}
        self._epochs: dict[str, int] = {}
        self._todo: deque[tuple[PipelineState, Action]] = deque()

    def adopt(self, record: PipelineRecord) -> None:
        """A pipeline that was recorded before this process began.

        Its definition is said again: the process before may have died just before saying it. The
        last one comes after its sinks were asked what they hold.
        """
        if record.pipeline_uid in self._states:
            return  # an earlier attempt to take its partition over came this far
        if record.closed:
            self._deleted[record.pipeline_uid] = record.commanded_at
            return
        if record.desired != "deleted":
            self._publisher.definition(record, _definition(record))
        self._states[record.pipeline_uid] = PipelineState(record=record)
        self._apply(record.pipeline_uid, Wanted(record=record, command=None))

    def release(self, pipeline_uid: str) -> None:
        """Another runner owns this pipeline from now on."""
        self._epochs.pop(pipeline_uid, None)
        if self._states.pop(pipeline_uid, None) is not None:
            self._drivers.stop(pipeline_uid, force=True)
            self._todo = deque(
                (state, action)
                for state, action in self._todo
                if state.record.pipeline_uid != pipeline_uid
            )

    def handle(self, command: Command, offset: int) -> None:
        """Carry out a command. One that comes again after a restart changes nothing."""
        if self._deleted.get(command.pipeline_uid) == offset:
            self._publish_answer(Answer(command=command, state="done"))
            return
        try:
            record = self._recorded(command, offset)
        except UserError as error:
            answer = Answer(command=command, state="failed", errors=error.problems)
            self._publish_answer(answer)
            return
        if record is None:
            return
        uid = record.pipeline_uid
        self._states.setdefault(uid, PipelineState(record=record))
        self._apply(uid, Wanted(record=record, command=command))

    def hear(
        self,
        pipeline_uid: str,
        epoch: int,
        event: DriverRuns | DriverBlocked | DriverFailed | DriverEnded,
    ) -> None:
        """Something that the driver of that lease has done; an earlier driver's are old news."""
        if self._epochs.get(pipeline_uid) == epoch:
            self._apply(pipeline_uid, event)

    def refuse(self, command: Command, reason: str) -> None:
        """A command that could not be carried out for too long; nothing of it was recorded."""
        problem = Problem(message=reason, hint="send the command again when that is mended")
        self._publish_answer(Answer(command=command, state="failed", errors=(problem,)))

    def tick(self) -> None:
        for uid in list(self._states):
            self._apply(uid, Tick())
        show(self._states.values())

    def act(self) -> None:
        """Carry out what was decided, in order; what raises Retryable stays first in line."""
        while self._todo:
            self._act(*self._todo[0])
            self._todo.popleft()

    def beat(self) -> None:
        for state in self._states.values():
            self._publisher.phase(state, None)

    def unanswered(self) -> set[str]:
        """Ids of the commands still to be answered; their offsets must not be committed."""
        pending = {command.id for state in self._states.values() for command in state.pending}
        unsaid = {action.command.id for _, action in self._todo if isinstance(action, Answer)}
        return pending | unsaid

    def _recorded(self, command: Command, offset: int) -> PipelineRecord | None:
        """The record that the command asks for, published if it is new.

        None for a command that a later one has overtaken: it was answered then, or nobody waits.
        """
        state = self._states.get(command.pipeline_uid)
        before = state.record if state is not None else None
        done_to = before.commanded_at if before else self._deleted.get(command.pipeline_uid, -1)
        if offset < done_to:
            return None
        again = before is not None and offset == done_to
        record = before if again else self._asked_for(command, before)
        assert record is not None
        if not again:
            record = replace(record, commanded_at=offset)
            self._publisher.record(record)
        if record.desired != "deleted":  # that it is gone is said when its sinks were asked
            self._publisher.definition(record, _definition(record))
        return record

    def _asked_for(self, command: Command, before: PipelineRecord | None) -> PipelineRecord:
        now = self._clock.now_ms()
        refuse_gone(command, before, deleted=command.pipeline_uid in self._deleted)
        if command.action == "apply":
            return self._applied(command, before, now)
        assert before is not None
        match command.action:
            case "restart":
                return self._restarted(command, before, now)
            case "start":
                return replace(before, desired="running", updated_at=now)
            case "stop":
                return replace(before, desired="stopped", updated_at=now)
            case "delete":
                return replace(before, desired="deleted", updated_at=now)
            case _:
                assert_never(command.action)

    def _applied(self, command: Command, before: PipelineRecord | None, now: int) -> PipelineRecord:
        assert command.manifest is not None
        manifest = parse_manifest(command.manifest)
        stages = define(manifest, self._topics.prepare(topics_of(manifest)), before)
        if before is None:
            return created(command, manifest.state, stages, now)
        return changed(before, command, manifest.state, stages, now)

    def _restarted(self, command: Command, before: PipelineRecord, now: int) -> PipelineRecord:
        """What is refused creates no topic; and a topic may be created anew at any moment."""
        start_from = beginning(command)
        manifest = parse_manifest(before.manifest)
        plans = topics_of(manifest, start_from)
        if start_from is None:
            refuse_recreated(before, self._topics.ids(plan.topic for plan in plans))
        topics = self._topics.prepare(plans)
        if start_from is None:
            refuse_recreated(before, {name: topic.topic_id for name, topic in topics.items()})
        return restarted(before, define(manifest, topics, before), now)

    def _end_facts(self, pipeline_uid: str, error: LifecycleError | None) -> None:
        """Nothing of a deleted pipeline is said after its last definition."""
        record = self._states[pipeline_uid].record
        self._publisher.definition(record, _definition(record))
        self._publisher.record(record)
        if error is not None:
            logger.error(
                "deleted, but what its sinks hold may not have been reported",
                extra={"pipeline": record.name, "reason": error.message},
            )
        self._deleted[pipeline_uid] = record.commanded_at
        metrics.forget(record.name)
        self._epochs.pop(pipeline_uid, None)
        del self._states[pipeline_uid]

    def _apply(self, pipeline_uid: str, event: Event) -> None:
        state = self._states.get(pipeline_uid)
        if state is None:
            return
        after, actions = decide(state, event, self._clock.now_ms())
        measure(state, after)
        self._states[pipeline_uid] = after
        self._todo.extend((after, action) for action in actions)

    def _act(self, state: PipelineState, action: Action) -> None:
        record = state.record
        match action:
            case StartDriver(closing=closing):
                epoch = self._publisher.claim(record)
                self._epochs[record.pipeline_uid] = epoch
                self._drivers.start(record, epoch, closing=closing)
                reason = "closing" if closing else state.reason.split(" ")[0]
                name = record.name
                metrics.count("waybill_driver_starts_total", pipeline=name, reason=reason)
            case StopDriver(force=force):
                self._drivers.stop(record.pipeline_uid, force=force)
            case Announce(phase_from=phase_from):
                logger.info(
                    "phase changed",
                    extra={"pipeline": record.name, "phase": state.phase, "reason": state.reason},
                )
                self._publisher.phase(state, phase_from)
            case Beat():
                self._publisher.phase(state, None)
            case EndFacts(error=error):
                self._end_facts(record.pipeline_uid, error)
            case Answer():
                self._publish_answer(action)
            case _:
                assert_never(action)

    def _publish_answer(self, answer: Answer) -> None:
        command = answer.command
        metrics.count("waybill_commands_total", action=command.action, state=answer.state)
        state = self._states.get(command.pipeline_uid)
        generation = state.record.generation if state is not None else None
        self._publisher.answer(answer, generation, _warnings(command))


def _definition(record: PipelineRecord) -> Definition:
    return Definition(name=record.name, deleted=record.desired == "deleted", stages=record.stages)


def _warnings(command: Command) -> tuple[str, ...]:
    if command.manifest is None:
        return ()
    try:
        manifest: Manifest = parse_manifest(command.manifest)
    except UserError:
        return ()
    return manifest.warnings()
