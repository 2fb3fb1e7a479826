"""Everything around a runner, in memory: Kafka, its topics, driver processes and the clock."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from message_builders import make_body
from waybill_shared.contract.commands import StopMode
from waybill_shared.contract.driver_news import TableMaintenance
from waybill_shared.contract.errors import Problem, Retryable
from waybill_shared.contract.events import Command, Definition, PipelineRecord, StageDefinition
from waybill_shared.contract.manifest.applied import AppliedManifest
from waybill_shared.contract.problems import Slug
from waybill_shared.kafka.own_topics import OwnTopics
from waybill_stage_runner.app.ports import Checked, Lease
from waybill_stage_runner.app.runner import Runner
from waybill_stage_runner.core.pipelines.actions import Answer
from waybill_stage_runner.core.pipelines.events import DriverEnded, DriverRuns, RunEvent
from waybill_stage_runner.core.pipelines.planning import TopicPlan, TopicState
from waybill_stage_runner.core.pipelines.putting import ReplaysTopic
from waybill_stage_runner.core.pipelines.states import PipelineState

EXAMPLE = (Path(__file__).parents[3] / "examples" / "orders.yaml").read_text()
UID = "uid"
STARTS = {"earliest": 3, "latest": 90}


class SameTopics(OwnTopics):
    """Nobody creates topics anew."""

    def __init__(self) -> None: ...

    def id_of(self, name: str) -> str:
        return f"id of {name}"

    def check(self) -> None: ...


@dataclass
class World:
    """Everything around a runner; remembers what was asked of it."""

    records: list[PipelineRecord] = field(default_factory=list)
    definitions: list[Definition] = field(default_factory=list)
    answers: list[tuple[str, str]] = field(default_factory=list)
    generations: list[int | None] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    results: list[str | None] = field(default_factory=list)
    warnings: list[tuple[str, ...]] = field(default_factory=list)
    reasons: list[Slug | None] = field(default_factory=list)
    phases: list[str] = field(default_factory=list)
    asked_by: list[str] = field(default_factory=list)
    """The actor of each phase."""
    skips: list[str] = field(default_factory=list)
    beats: list[str | None] = field(default_factory=list)
    started: list[int] = field(default_factory=list)
    urgent: list[bool] = field(default_factory=list)
    checks: list[str] = field(default_factory=list)
    only_checked: list[str] = field(default_factory=list)
    compared: list[AppliedManifest | None] = field(default_factory=list)
    sizes: list[int | None] = field(default_factory=list)
    """Of the runs that are likely to follow checks."""
    maintained: list[tuple[AppliedManifest, str, bool]] = field(default_factory=list)
    kept: list[TableMaintenance] = field(default_factory=list)
    living: dict[str, int] = field(default_factory=dict)
    """Claims of drivers that were started and not killed, by pipeline."""
    closing: list[int] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)
    dumped: list[str] = field(default_factory=list)
    pauses: list[tuple[str, bool, int]] = field(default_factory=list)
    stage_starts: list[tuple[str, tuple[str, ...], int]] = field(default_factory=list)
    claimed: list[PipelineRecord] = field(default_factory=list)
    topics: dict[str, str] = field(default_factory=dict)
    claims: int = 0
    away: bool = False
    mute: bool = False  # Kafka takes nothing that is said
    specs: list[PipelineRecord] = field(default_factory=list)
    closed: tuple[StageDefinition, ...] = ()
    now: int = 1_000
    waited: int = 0

    def ids(self, plans: Iterable[TopicPlan]) -> Mapping[str, str]:
        if self.away:
            raise Retryable("kafka is away")
        names = {plan.topic for plan in plans}
        return {name: topic_id for name, topic_id in self.topics.items() if name in names}

    def prepare(self, plans: Iterable[TopicPlan]) -> Mapping[str, TopicState]:
        if self.away:
            raise Retryable("kafka is away")
        return {
            plan.topic: TopicState(
                topic_id=self.topics.setdefault(plan.topic, f"{plan.topic}#1"),
                starts=dict.fromkeys(
                    range(plan.partitions), STARTS.get(plan.starting, STARTS["earliest"])
                ),
                ends=dict.fromkeys(range(plan.partitions), STARTS["latest"]),
            )
            for plan in plans
        }

    def replays(self) -> ReplaysTopic:
        ends = {3: (STARTS["earliest"], STARTS["latest"])}
        return ReplaysTopic(name="waybill.replays", topic_id="replays#1", ends=ends)

    def starts_at(
        self, topics: Mapping[str, TopicState], at_ms: int
    ) -> Mapping[str, Mapping[int, int]]:
        """The first record that is not older than n ms has offset n, up to the end."""
        return {
            topic: {p: min(at_ms, end) for p, end in state.ends.items()}
            for topic, state in topics.items()
        }

    def change(self, record: PipelineRecord, definition: Definition | None) -> None:
        if self.away or self.mute:
            raise Retryable("kafka is away")
        self.records.append(record)
        if definition is not None:
            self.definitions.append(definition)

    def claim(self, record: PipelineRecord) -> Lease:
        self.claims += 1
        self.claimed.append(record)
        return Lease(epoch=self.claims, lifecycle_id="L1")

    def phase(self, state: PipelineState, phase_from: str, *, recorded: bool) -> None:
        self.phases.append(state.phase)
        self.asked_by.append(state.actor)
        if recorded:
            self.records.append(state.record)

    def skipped(self, state: PipelineState, reason: str) -> None:
        self.skips.append(reason)
        self.records.append(state.record)

    def maintenance(self, state: PipelineState, maintenance: TableMaintenance) -> None:
        self.kept.append(maintenance)

    def beat(self, states: Sequence[PipelineState]) -> None:
        self.beats += [state.blocked_by for state in states]

    def report_blocked(self, state: PipelineState) -> None:
        self.beats.append(state.blocked_by)

    def answer(self, answer: Answer, generation: int | None, warnings: tuple[str, ...]) -> None:
        self.answers.append((answer.command.id, answer.state))
        self.generations.append(generation)
        self.problems += answer.errors
        self.reasons.append(answer.problem)
        self.results.append(answer.result)
        self.warnings.append(warnings)

    def start(
        self,
        record: PipelineRecord,
        lease: Lease,
        *,
        urgent: bool,
        closing: tuple[StageDefinition, ...] = (),
    ) -> None:
        self.urgent.append(urgent)
        (self.closing if closing else self.started).append(lease.epoch)
        self.specs.append(record)
        self.living[record.pipeline_uid] = lease.epoch
        self.closed = closing

    def stop(self, pipeline_uid: str, mode: StopMode) -> None:
        self.stopped.append(pipeline_uid)
        if mode is StopMode.FORCE:
            self.living.pop(pipeline_uid, None)

    def dump_threads(self, pipeline_uid: str) -> None:
        self.dumped.append(pipeline_uid)

    def pause(self, pipeline_uid: str, *, paused: bool, order: int) -> None:
        self.pauses.append((pipeline_uid, paused, order))

    def start_stages(self, pipeline_uid: str, stages: tuple[str, ...], *, order: int) -> None:
        self.stage_starts.append((pipeline_uid, stages, order))

    def check(
        self,
        check_id: str,
        pipeline_uid: str,
        manifest: AppliedManifest,
        *,
        for_run: bool = True,
        before: AppliedManifest | None = None,
        compared_with: str | None = None,
        parallelism: int | None = None,
    ) -> None:
        self.checks.append(check_id)
        self.sizes.append(parallelism)
        self.compared.append(before)
        if not for_run:
            self.only_checked.append(check_id)

    def maintain(self, check_id: str, record: PipelineRecord, sink: str, *, dry_run: bool) -> None:
        self.checks.append(check_id)
        self.maintained.append((record.manifest, sink, dry_run))

    def newest_log(self, pipeline_uid: str, lines: int) -> list[str]:
        return [f"{pipeline_uid} {number}" for number in range(lines)]

    def forget_check(self, check_id: str) -> None:
        self.checks.remove(check_id)

    def now_ms(self) -> int:
        return self.now

    def monotonic_ms(self) -> int:
        return self.waited


def runner_in(world: World) -> Runner:
    return Runner(world, world, world, world)


def command(
    number: int, action: str = "apply", manifest: str = EXAMPLE, start_from: str | None = None
) -> Command:
    return Command(
        tenant="default",
        pipeline_uid=UID,
        id=f"c{number}",
        pipeline="orders",
        life=0,
        actor="ada",
        request_id="r",
        at=0,
        body=make_body(action, manifest=manifest, start_from=start_from),
    )


def carry_out(runner: Runner, command: Command, offset: int) -> None:
    """With a check that finds nothing, if one is asked for."""
    runner.handle(command, offset)
    pass_check(runner, command)
    runner.act()


def pass_check(runner: Runner, command: Command) -> None:
    runner.finish_check(Checked(check_id=command.id))
    freed = runner.next_ready()
    if freed is not None:
        runner.handle(freed[1], freed[0])


def receive(runner: Runner, epoch: int, *events: RunEvent) -> None:
    """From the driver of that claim."""
    for event in events:
        runner.receive(UID, epoch, event)
    runner.act()


def running(world: World, manifest: str = EXAMPLE) -> Runner:
    runner = runner_in(world)
    carry_out(runner, command(1, manifest=manifest), 1)
    receive(runner, 1, DriverRuns())
    return runner


def stopped(world: World) -> Runner:
    runner = running(world)
    carry_out(runner, command(2, "stop"), 2)
    receive(runner, 1, DriverEnded(exit_code=0))
    return runner
