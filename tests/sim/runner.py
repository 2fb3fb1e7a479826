"""The runner's process: the real `Runner` over simulated topics, commands and driver processes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from sim.driver import LIMITS, Crash, Driver
from sim.driver_world import DriverEvent
from sim.operations import Operations
from sim.replay_log import REPLAYS, REPLAYS_ID
from sim.runner_drivers import LocalDrivers
from sim.runner_producer import RunnerProducer
from sim.runner_world import PATIENCE_MS, Around
from sim.sinks import Edge
from sim.tracker import Topics
from waybill_shared.contract.driver_news import TableMaintenance
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.events import (
    Command,
    Definition,
    Fact,
    PipelineRecord,
)
from waybill_shared.contract.lifecycle import Phase
from waybill_shared.contract.lifecycle_events import Beat, LifecycleEvent
from waybill_stage_runner.app.admission import Admission
from waybill_stage_runner.app.ports import Checked, Lease
from waybill_stage_runner.app.runner import Runner
from waybill_stage_runner.core.pipelines.actions import Answer
from waybill_stage_runner.core.pipelines.planning import TopicPlan, TopicState
from waybill_stage_runner.core.pipelines.putting import ReplaysTopic
from waybill_stage_runner.core.pipelines.states import EventKind, MessageOrigin, PipelineState
from waybill_stage_runner.core.pool.model import CheckFailure

CHECKS_LOST: Final = 20  # one of so many ends with the drivers in which it is made


class RunnerProcess:
    """Fulfils `Topics` and `Publisher` for its runner."""

    def __init__(self, world: Around, operations: Operations, topics: Topics, edge: Edge) -> None:
        self.dead = False
        self.reachable = True
        self._world = world
        self._operations = operations
        self._topics = topics
        self._edge = edge
        self.drivers = LocalDrivers(world, self)
        self._runner = self._new()
        self._heard: list[tuple[Driver, DriverEvent]] = []
        self._held: tuple[int, Command] | None = None
        self._at = 0
        self._open: dict[int, str] = {}
        self._adopted = False
        self._refusing: dict[str, int] = {}
        """Offsets of the commands that it has decided to refuse, and has not yet answered."""
        self._producer = RunnerProducer(world)

    def hear(self, driver: Driver, event: DriverEvent) -> None:
        if not self.dead:
            self._heard.append((driver, event))

    def turn(self) -> None:
        """As the loop does it: hear, act, then one command."""
        if not self._adopted:
            if not self.reachable:
                return  # Kafka has not given it the partition yet
            self._adopt()
        while self._heard:
            driver, event = self._heard.pop(0)
            self._runner.receive(driver.record.pipeline_uid, driver.epoch, event)
        self._hear_checks()
        self._runner.tick()
        with suppress(Retryable):
            self._runner.act()
        self._carry_out()
        with suppress(Retryable):
            self._runner.act()
        self._commit()

    def release(self) -> None:
        """The group has given its partition to another one, and it knows."""
        self._runner.release()
        self._runner = self._new()
        self._open.clear()
        self._refusing.clear()
        self.drivers.checks.clear()
        self._producer = RunnerProducer(self._world)
        self._held, self._adopted = None, False

    def return_to_the_log(self) -> None:
        """First its producer is heard again, then it polls."""
        self.reachable = True
        if not self._shut_out():
            self._producer.settle()
        self.release()

    def _adopt(self) -> None:
        """Whoever had the partition is shut out before anything is read."""
        self._operations.owner = self
        self._edge("runner.begins")
        self._at = self._operations.committed
        self._runner.adopt_answered(self._operations.replies)
        for record in self._operations.newest().values():
            self._runner.adopt(record)
        self._adopted = True

    def _hear_checks(self) -> None:
        """Each takes its time, and may end with its driver."""
        if self.drivers.checks and self._world.pick(2) == 0:
            check_id = self.drivers.checks.pop(0)
            lost = self._world.pick(CHECKS_LOST) == 1
            failed: CheckFailure | None = "driver_exited" if lost else None
            self._edge("runner.checked")
            if failed is not None:
                self._refuse(check_id)
            self._runner.finish_check(Checked(check_id=check_id, failed=failed))

    def _carry_out(self) -> None:
        """What was checked first, as the loop does it."""
        if self._runner.busy:
            return
        ready = self._runner.next_ready()
        if ready is not None:
            self._handle(*ready)
            return
        if self._held is None and self.reachable:
            self._poll()
        if self._held is not None:
            self._handle(*self._held)
            self._held = None

    def _handle(self, offset: int, command: Command) -> None:
        """Decide it, one way or the other, or let it wait."""
        try:
            self._runner.handle(command, offset)
        except Retryable as error:
            waited_ms = self._runner.postpone(command, offset)
            if self._world.patient or waited_ms < PATIENCE_MS:
                return
            self._refusing[command.id] = offset
            self._runner.refuse(command, str(error))

    def _refuse(self, command_id: str) -> None:
        offset = next(at for at, name in self._open.items() if name == command_id)
        self._refusing[command_id] = offset

    def _poll(self) -> None:
        commands = self._operations.commands
        if self._at < len(commands):
            self._held = (self._at, commands[self._at])
            self._open[self._at] = commands[self._at].id
            self._at += 1

    def _commit(self) -> None:
        unanswered = self._runner.open_commands()
        if self._held is not None:
            unanswered.add(self._held[1].id)
        self._open = {at: name for at, name in self._open.items() if name in unanswered}
        if self.reachable:  # else the group would not take it
            self._operations.committed = min([self._at, *self._open])

    def _new(self) -> Runner:
        clock, admission = self._world.clocks.runner, Admission(LIMITS)
        return Runner(self, self, self.drivers, clock, admission=admission)

    # Topics

    def prepare(self, plans: Iterable[TopicPlan]) -> Mapping[str, TopicState]:
        self._ask()
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

    def ids(self, plans: Iterable[TopicPlan]) -> Mapping[str, str]:
        self._ask()
        topics = self._world.cluster.topics
        names = {plan.topic for plan in plans}
        return {name: topic.topic_id for name, topic in topics.items() if name in names}

    def replays(self) -> ReplaysTopic:
        self._ask()
        return ReplaysTopic(name=REPLAYS, topic_id=REPLAYS_ID, ends={})

    def starts_at(
        self, topics: Mapping[str, TopicState], at_ms: int
    ) -> Mapping[str, Mapping[int, int]]:
        raise AssertionError("nobody asks for it here")

    def _ask(self) -> None:
        if self._world.stuck():
            raise Retryable("the topics do not answer")

    # Publisher

    def change(self, record: PipelineRecord, definition: Definition | None) -> None:
        facts = [] if definition is None else [self._fact(record, definition)]

        def append() -> None:
            self._record(record)
            self._topics.facts.extend(facts)

        self._publish(append, "change")

    def claim(self, record: PipelineRecord) -> Lease:
        claim = self._event(PipelineState(record=record), "claim", None)

        def append() -> None:
            self._record(record)
            self._topics.lifecycle.append(claim)

        self._publish(append, "event")
        epoch = next(at for at, event in enumerate(self._topics.lifecycle) if event is claim)
        return Lease(epoch=epoch, lifecycle_id="lifecycle")

    def phase(self, state: PipelineState, phase_from: str, *, recorded: bool) -> None:
        event = self._event(state, "transition", phase_from)
        self._say(state, event, recorded=recorded)

    def skipped(self, state: PipelineState, reason: str) -> None:
        self._say(state, self._event(state, "schedule", None, reason), recorded=True)

    def report_blocked(self, state: PipelineState) -> None:
        event = self._event(state, "heartbeat", None)
        self._publish(lambda: self._topics.lifecycle.append(event), "event")

    def maintenance(self, state: PipelineState, maintenance: TableMaintenance) -> None:
        raise NotImplementedError("sinks of the simulation need none")

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
        self._publish(lambda: self._topics.beats.extend(beats), "beat")

    def answer(self, answer: Answer, generation: int | None, warnings: tuple[str, ...]) -> None:
        operations, name = self._operations, answer.command.id

        def append() -> None:
            operations.replies[name] = (answer.state, answer.errors)
            if name in self._refusing:
                operations.refused.add(self._refusing.pop(name))

        self._publish(append, "reply")

    def _say(self, state: PipelineState, event: LifecycleEvent, *, recorded: bool) -> None:
        def append() -> None:
            self._topics.lifecycle.append(event)
            self._world.schedules.said(state, event)
            if recorded:
                self._record(state.record)
            if event.kind == "transition" and state.phase is Phase.FINISHED:
                self._world.runs.rests(state.record, phase_from=event.phase_from)

        self._publish(append, "event")

    def _record(self, record: PipelineRecord) -> None:
        self._operations.records.append(record)
        self._world.schedules.recorded(record)
        self._world.stops.recorded(record)

    def _publish(self, append: Callable[[], None], what: str) -> None:
        """One transaction. Whoever gets Retryable does not know whether it is there, or will be."""
        self._edge(f"runner.{what}.before_commit")
        if self.reachable and self._shut_out():
            raise Crash  # its process ends, as that of any runner that lost its partition
        self._producer.commit(append, what, reachable=self.reachable)
        self._edge(f"runner.{what}.answer_lost")

    def _shut_out(self) -> bool:
        return self._operations.owner is not self

    def _fact(self, record: PipelineRecord, body: Definition) -> Fact:
        return Fact(
            tenant=record.tenant,
            pipeline_uid=record.pipeline_uid,
            generation=record.generation,
            at=self._world.clocks.runner.now_ms(),
            body=body,
        )

    def _event(
        self,
        state: PipelineState,
        kind: EventKind,
        phase_from: str | None,
        skipped: str | None = None,
    ) -> LifecycleEvent:
        clock = self._world.clocks.runner
        saying = MessageOrigin(at=clock.now_ms(), now=clock.monotonic_ms())
        return state.event(kind, phase_from, saying, skipped=skipped)
