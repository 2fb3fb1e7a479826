"""The runner's process: the real `Runner` over simulated topics, commands and driver processes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from shared.clock import Clocks
from shared.events import (
    Beat,
    Command,
    Definition,
    Fact,
    LifecycleEvent,
    PipelineRecord,
    Problem,
)
from sim.driver import Crash, Driver
from sim.log import Cluster
from sim.sinks import Edge
from sim.tracker import Topics
from stage_runner.app import Runner
from stage_runner.core.moves import Answer, DriverEnded, DriverFailed, DriverRuns
from stage_runner.core.planning import TopicPlan, TopicState
from stage_runner.core.states import PipelineState

EventKind = Literal["claim", "transition", "heartbeat"]
DriverEvent = DriverRuns | DriverFailed | DriverEnded


@dataclass(slots=True)
class Operations:
    """`waybill.commands`, `.pipelines` and `.replies`, and the group's offset in the first."""

    commands: list[Command] = field(default_factory=list)
    records: list[PipelineRecord] = field(default_factory=list)
    replies: dict[str, tuple[str, tuple[Problem, ...]]] = field(default_factory=dict)
    committed: int = 0
    owner: object = None
    """The runner that was the last to begin: every other is shut out."""

    def newest(self) -> dict[str, PipelineRecord]:
        return {record.pipeline_uid: record for record in self.records}


class Around(Protocol):
    """The world as a runner needs it."""

    cluster: Cluster
    topics: Topics
    operations: Operations
    drivers: list[Driver]

    @property
    def clock(self) -> Clocks: ...

    def launch(self, record: PipelineRecord, epoch: int, *, closing: bool) -> None: ...

    def topic_id(self) -> str: ...


class RunnerProcess:
    """Fulfils `Topics`, `Publisher` and `Drivers` for its runner."""

    def __init__(self, world: Around, edge: Edge) -> None:
        self._world = world
        self._edge = edge
        self._runner = Runner(self, self, self, world.clock)
        self._heard: list[tuple[Driver, DriverEvent]] = []
        self._at = world.operations.committed
        self._open: dict[int, str] = {}
        self._adopted = False

    def hear(self, driver: Driver, event: DriverEvent) -> None:
        self._heard.append((driver, event))

    def turn(self) -> None:
        """As the loop does it: hear, act, then one command."""
        if not self._adopted:
            self._adopt()
        while self._heard:
            driver, event = self._heard.pop(0)
            self._runner.hear(driver.record.pipeline_uid, driver.epoch, event)
        self._runner.tick()
        self._runner.act()
        self._carry_out()
        self._runner.act()
        self._commit()

    def _adopt(self) -> None:
        self._world.operations.owner = self
        self._edge("runner.begins")
        for record in self._world.operations.newest().values():
            self._runner.adopt(record)
        self._adopted = True

    def _carry_out(self) -> None:
        if self._at < len(self._world.operations.commands):
            command = self._world.operations.commands[self._at]
            self._open[self._at] = command.id
            self._runner.handle(command, self._at)
            self._at += 1

    def _commit(self) -> None:
        unanswered = self._runner.unanswered()
        self._open = {at: name for at, name in self._open.items() if name in unanswered}
        self._world.operations.committed = min([self._at, *self._open])

    # Topics

    def prepare(self, plans: Iterable[TopicPlan]) -> Mapping[str, TopicState]:
        cluster = self._world.cluster
        states = {}
        for plan in plans:
            topic = cluster.topics.get(plan.topic)
            if topic is None:
                topic = cluster.create(plan.topic, self._world.topic_id(), plan.partitions)
            starts = {
                number: partition.end() if plan.starting == "latest" else partition.start
                for number, partition in enumerate(topic.partitions)
            }
            ends = {number: each.end() for number, each in enumerate(topic.partitions)}
            states[plan.topic] = TopicState(topic_id=topic.topic_id, starts=starts, ends=ends)
        self._edge("runner.topics_prepared")
        return states

    def ids(self, names: Iterable[str]) -> Mapping[str, str]:
        topics = self._world.cluster.topics
        return {name: topics[name].topic_id for name in names if name in topics}

    # Publisher

    def change(self, record: PipelineRecord, definition: Definition | None) -> None:
        facts = [] if definition is None else [self._fact(record, definition)]

        def append() -> None:
            self._world.operations.records.append(record)
            self._world.topics.facts.extend(facts)

        self._publish(append, "change")

    def claim(self, record: PipelineRecord) -> int:
        claim = self._event(PipelineState(record=record), "claim", None)
        self._say([claim])
        return next(at for at, event in enumerate(self._world.topics.lifecycle) if event is claim)

    def phase(self, state: PipelineState, phase_from: str) -> None:
        self._say([self._event(state, "transition", phase_from)])

    def blocked(self, state: PipelineState) -> None:
        self._say([self._event(state, "heartbeat", None)])

    def beat(self, states: Sequence[PipelineState]) -> None:
        beats = [
            Beat(
                tenant=state.record.tenant,
                pipeline_uid=state.record.pipeline_uid,
                at=self._world.clock.now_ms(),
                blocked_by=state.blocked_by,
            )
            for state in states
        ]
        self._publish(lambda: self._world.topics.beats.extend(beats), "beat")

    def answer(self, answer: Answer, generation: int | None, warnings: tuple[str, ...]) -> None:
        replies = self._world.operations.replies
        told = (answer.state, answer.errors)
        self._publish(lambda: replies.update({answer.command.id: told}), "reply")

    # Drivers

    def start(self, record: PipelineRecord, epoch: int, *, closing: bool) -> None:
        self._world.launch(record, epoch, closing=closing)

    def stop(self, pipeline_uid: str, *, force: bool) -> None:
        for driver in self._world.drivers:
            if driver.record.pipeline_uid == pipeline_uid:
                driver.stopping = True
                if force:
                    driver.kill()

    def _publish(self, append: Callable[[], None], what: str) -> None:
        """One transaction: a runner that was shut out does not get it through any more."""
        self._edge(f"runner.{what}.before_commit")
        if self._world.operations.owner is not self:
            raise Crash  # its process ends, as that of any runner that lost its partition
        append()
        self._edge(f"runner.{what}.answer_lost")

    def _say(self, events: list[LifecycleEvent]) -> None:
        self._publish(lambda: self._world.topics.lifecycle.extend(events), "event")

    def _fact(self, record: PipelineRecord, body: Definition) -> Fact:
        return Fact(
            tenant=record.tenant,
            pipeline_uid=record.pipeline_uid,
            generation=record.generation,
            at=self._world.clock.now_ms(),
            body=body,
        )

    def _event(
        self, state: PipelineState, kind: EventKind, phase_from: str | None
    ) -> LifecycleEvent:
        record = state.record
        return LifecycleEvent(
            tenant=record.tenant,
            pipeline_uid=record.pipeline_uid,
            pipeline=record.name,
            generation=record.generation,
            kind=kind,
            phase_from=phase_from,
            phase=state.phase,
            reason=state.reason,
            error=state.error,
            actor="runner",
            run_id="run",
            attempt=state.attempt,
            next_at=state.next_at,
            at=self._world.clock.now_ms(),
        )
