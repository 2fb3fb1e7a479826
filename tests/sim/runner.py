"""The runner's process: the real `Runner` over simulated topics, commands and driver processes."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Final, Literal, Protocol

from shared.errors import Retryable
from shared.events import (
    Command,
    Definition,
    Fact,
    LifecycleEvent,
    PipelineRecord,
    Problem,
)
from sim.clocks import Clocks, TrueClock
from sim.driver import Driver
from sim.log import Cluster
from sim.sinks import Edge
from sim.tracker import Topics
from stage_runner.app import Runner
from stage_runner.core.moves import Answer, DriverEnded, DriverFailed, DriverRuns
from stage_runner.core.planning import TopicPlan, TopicState
from stage_runner.core.supervision import PipelineState

EventKind = Literal["claim", "transition", "heartbeat"]
DriverEvent = DriverRuns | DriverFailed | DriverEnded
PATIENCE_MS: Final = 3_000  # as the loop's COMMAND_TIMEOUT_S, for scenarios that last a minute


@dataclass(slots=True)
class Operations:
    """`waybill.commands`, `.pipelines` and `.replies`, and the group's offset in the first."""

    commands: list[Command] = field(default_factory=list)
    records: list[PipelineRecord] = field(default_factory=list)
    replies: dict[str, tuple[str, tuple[Problem, ...]]] = field(default_factory=dict)
    committed: int = 0
    refused: set[int] = field(default_factory=set)
    """Offsets of commands that were answered as if nothing of them was written."""

    def newest(self) -> dict[str, PipelineRecord]:
        return {record.pipeline_uid: record for record in self.records}


class Around(Protocol):
    """The world as a runner needs it."""

    cluster: Cluster
    topics: Topics
    operations: Operations
    drivers: list[Driver]
    dice: Random
    patient: bool
    """Whether a command waits for as long as it takes."""

    @property
    def clock(self) -> TrueClock: ...

    @property
    def clocks(self) -> Clocks: ...

    def stuck(self) -> bool:
        """Whether what is published now stays with its producer for the moment."""

    def launch(
        self, record: PipelineRecord, epoch: int, host: object, *, closing: bool
    ) -> None: ...

    def topic_id(self) -> str: ...


class RunnerProcess:
    """Fulfils `Topics`, `Publisher` and `Drivers` for its runner."""

    def __init__(self, world: Around, edge: Edge) -> None:
        self.dead = False
        self.reachable = True
        self._world = world
        self._edge = edge
        self._runner = Runner(self, self, self, world.clocks.runner)
        self._heard: list[tuple[Driver, DriverEvent]] = []
        self._held: tuple[int, Command] | None = None
        self._held_since = 0
        self._at = 0
        self._open: dict[int, str] = {}
        self._owned: set[str] = set()
        self._adopted = False
        self._unsent: list[Callable[[], None]] = []
        """What a producer keeps when nobody acknowledges it; it is sent in its order."""

    def hear(self, driver: Driver, event: DriverEvent) -> None:
        if not self.dead:
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

    def beat(self) -> None:
        self._runner.beat()

    def release(self) -> None:
        """The group has given its partition to another one, and it knows."""
        for uid in sorted(self._owned):
            self._runner.release(uid)
        self._owned.clear()
        self._open.clear()
        self._held, self._adopted = None, False

    def return_to_the_log(self) -> None:
        """First its producer is heard again, then it polls."""
        self.reachable = True
        self._land()
        self.release()

    def _adopt(self) -> None:
        self._at = self._world.operations.committed
        for record in self._world.operations.newest().values():
            self._owned.add(record.pipeline_uid)
            self._runner.adopt(record)
        self._adopted = True

    def _carry_out(self) -> None:
        if self._held is None and self.reachable:
            self._poll()
        if self._held is None:
            return
        offset, command = self._held
        self._owned.add(command.pipeline_uid)
        try:
            self._runner.handle(command, offset)
        except Retryable as error:
            waited = self._world.clock.now - self._held_since
            if self._world.patient or waited < PATIENCE_MS:
                return
            self._runner.refuse(command, str(error))
            self._world.operations.refused.add(offset)
        self._held = None

    def _poll(self) -> None:
        commands = self._world.operations.commands
        if self._at < len(commands):
            self._held, self._held_since = (self._at, commands[self._at]), self._world.clock.now
            self._open[self._at] = commands[self._at].id
            self._at += 1

    def _commit(self) -> None:
        unanswered = self._runner.unanswered()
        if self._held is not None:
            unanswered.add(self._held[1].id)
        self._open = {at: name for at, name in self._open.items() if name in unanswered}
        if self.reachable:  # else the group would not take it
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
                number: partition.stable_end() if plan.starting == "latest" else partition.start
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

    def record(self, record: PipelineRecord) -> None:
        self._publish(lambda: self._world.operations.records.append(record), "record")

    def definition(self, record: PipelineRecord, body: Definition) -> None:
        fact = Fact(
            tenant=record.tenant,
            pipeline_uid=record.pipeline_uid,
            generation=record.generation,
            at=self._world.clocks.runner.now_ms(),
            body=body,
        )
        self._publish(lambda: self._world.topics.facts.append(fact), "definition")

    def claim(self, record: PipelineRecord) -> int:
        return self._say(PipelineState(record=record), "claim", None)

    def phase(self, state: PipelineState, phase_from: str | None) -> None:
        self._say(state, "heartbeat" if phase_from is None else "transition", phase_from)

    def answer(self, answer: Answer, generation: int | None, warnings: tuple[str, ...]) -> None:
        replies = self._world.operations.replies
        told = (answer.state, answer.errors)
        self._publish(lambda: replies.update({answer.command.id: told}), "reply")

    # Drivers

    def start(self, record: PipelineRecord, epoch: int, *, closing: bool) -> None:
        self._world.launch(record, epoch, self, closing=closing)

    def stop(self, pipeline_uid: str, *, force: bool) -> None:
        for driver in self._world.drivers:
            if driver.host is self and driver.record.pipeline_uid == pipeline_uid:
                driver.stopping = True
                if force:
                    driver.kill()

    def _publish(self, append: Callable[[], None], what: str) -> None:
        """Whoever gets Retryable does not know whether it stands there, or will."""
        self._edge(f"runner.before_{what}")
        self._unsent.append(append)
        if not self.reachable or self._world.stuck():
            raise Retryable(f"the {what} is not acknowledged")
        self._land()
        self._edge(f"runner.after_{what}")
        if self._world.stuck():
            raise Retryable(f"the acknowledgement of the {what} is lost")

    def _land(self) -> None:
        while self._unsent:
            self._unsent.pop(0)()

    def _say(self, state: PipelineState, kind: EventKind, phase_from: str | None) -> int:
        """The offset at which it stands."""
        record, topic = state.record, self._world.topics.lifecycle
        event = LifecycleEvent(
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
            at=self._world.clocks.runner.now_ms(),
        )
        offsets: list[int] = []

        def append() -> None:
            offsets.append(len(topic))
            topic.append(event)

        self._publish(append, "event")
        return offsets[0]
