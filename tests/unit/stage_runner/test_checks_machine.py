"""Any sequence of commands, checks, runs and restarts: one answer each, one run each, in order."""

from contextlib import suppress
from dataclasses import dataclass, field, replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from builders import MANIFEST
from message_builders import make_problem
from strategies import patiently
from unit.stage_runner.fakes import World, command, runner_in
from waybill_shared.contract.commands import Apply
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.events import Command, Definition, PipelineRecord, StageDefinition
from waybill_shared.contract.lifecycle import STOPS
from waybill_shared.contract.manifest.applied import AppliedManifest
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.words import Action, OperationState
from waybill_stage_runner.app.ports import Checked, Lease
from waybill_stage_runner.core.pipelines.actions import Answer
from waybill_stage_runner.core.pipelines.events import DriverEnded, DriverRuns, RunQueued

PIPELINES = ("a", "b")
TEXTS = tuple(f"{MANIFEST}title: number {number}\n" for number in range(2))
ACTIONS = (*["apply"] * 12, *["stop", "start", "restart"] * 4, "delete")
FOUND = {
    "passed": Checked(check_id=""),
    "refused": Checked(check_id="", problems=(make_problem(),)),
    "driver_exited": Checked(check_id="", failed="driver_exited"),
    "deadline": Checked(check_id="", failed="deadline"),
}


@dataclass
class StrictWorld(World):
    """Asserts what may be asked of it at all."""

    newest: dict[str, PipelineRecord] = field(default_factory=dict)
    replies: dict[str, Answer] = field(default_factory=dict)
    checking: dict[str, Command] = field(default_factory=dict)
    passed: set[tuple[str, AppliedManifest]] = field(default_factory=set)
    runs: dict[str, int] = field(default_factory=dict)
    """Claims of the runs whose end was not told, by pipeline."""
    log: list[Command] = field(default_factory=list)

    def change(self, record: PipelineRecord, definition: Definition | None) -> None:
        super().change(record, definition)
        uid, at = record.pipeline_uid, record.commanded_at
        before = self.newest.get(uid)
        assert before is None or before.commanded_at < at or (record.closed and not before.closed)
        assert (uid, record.manifest) in self.passed, "a text that no check has found to be good"
        waiting = [c for c in self.checking.values() if c.pipeline_uid == uid]
        assert all(offset_of(c) > at for c in waiting), "it has overtaken one that is checked"
        self.newest[uid] = record

    def answer(self, answer: Answer, generation: int | None, warnings: tuple[str, ...]) -> None:
        super().answer(answer, generation, warnings)
        assert answer.command.id not in self.replies
        self.replies[answer.command.id] = answer

    def start(
        self,
        record: PipelineRecord,
        lease: Lease,
        *,
        urgent: bool,
        closing: tuple[StageDefinition, ...] = (),
    ) -> None:
        super().start(record, lease, urgent=urgent, closing=closing)
        assert record.pipeline_uid not in self.runs, "two runs of one pipeline"
        self.runs[record.pipeline_uid] = lease.epoch

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
        checked = self.log[int(check_id.removeprefix("c"))]
        assert (checked.pipeline_uid, manifest_of(checked)) == (pipeline_uid, manifest)
        assert check_id not in self.checking
        assert check_id not in self.replies
        self.checking[check_id] = checked

    def forget_check(self, check_id: str) -> None:
        del self.checking[check_id]

    def effects(self) -> tuple[int, ...]:
        """How much was done apart from answers."""
        runs = (len(self.started), len(self.closing), len(self.stopped))
        return (self.claims, len(self.records), len(self.phases), *runs)


class Checking(RuleBasedStateMachine):
    """A log of commands, of which one runner after another takes what is not answered."""

    def __init__(self) -> None:
        super().__init__()
        self.world = StrictWorld()
        self.runner = runner_in(self.world)
        self.at = self.committed = 0
        self.held: Command | None = None
        self.patient = True

    @initialize(running=st.booleans())
    def begins(self, running: bool) -> None:
        for uid in PIPELINES if running else ():
            self.somebody_sends(uid, "apply", TEXTS[0], 1)
            self.ends_check(self.world.log[-1].id, "passed")
            self.turns()

    @rule(
        uid=st.sampled_from(PIPELINES),
        action=st.sampled_from(ACTIONS),
        text=st.sampled_from(TEXTS),
        times=st.sampled_from([1, 1, 2]),
    )
    def somebody_sends(self, uid: str, action: str, text: str, times: int) -> None:
        for _ in range(times):
            sent = command(len(self.world.log), action, text)
            self.world.log.append(replace(sent, pipeline_uid=uid))
            self.turns()

    @precondition(lambda self: self.has_work())
    @rule()
    def turns(self) -> None:
        """As the loop does it: what has waited goes first."""
        freed = None if self.runner.busy else self.runner.next_ready()
        if freed is not None:
            self.handles(freed[1])
        elif not self.runner.busy:
            self.polls()
            if self.held is not None:
                self.handles(self.held)
                self.held = None
        self.acts()

    def polls(self) -> None:
        if self.held is None and self.at < len(self.world.log):
            self.held = self.world.log[self.at]
            self.at += 1

    def handles(self, command: Command) -> None:
        before = self.world.effects()
        try:
            self.runner.handle(command, offset_of(command))
        except Retryable:
            self.runner.postpone(command, offset_of(command))
            if self.patient:
                return
            self.runner.refuse(command, "kafka is away")
        if command.id in self.world.checking:
            self.acts()
            assert self.world.effects() == before

    def acts(self) -> None:
        with suppress(Retryable):
            self.runner.act()
        unanswered = self.open_commands()
        self.committed = min([self.at, *(n for n in range(self.at) if f"c{n}" in unanswered)])

    def open_commands(self) -> set[str]:
        held = set() if self.held is None else {self.held.id}
        return self.runner.open_commands() | held

    @precondition(lambda self: self.world.checking)
    @rule(data=st.data(), found=st.sampled_from([*["passed"] * 3, *FOUND]))
    def a_check_ends(self, data: st.DataObject, found: str) -> None:
        self.ends_check(data.draw(st.sampled_from(sorted(self.world.checking))), found)

    def ends_check(self, check_id: str, found: str) -> None:
        checked = self.world.checking.pop(check_id)
        if found == "passed":
            assert isinstance(checked.body, Apply)
            self.world.passed.add((checked.pipeline_uid, checked.body.manifest))
        self.acts()
        before, busy = self.world.effects(), self.runner.busy
        self.runner.finish_check(replace(FOUND[found], check_id=check_id))
        self.acts()
        assert busy or self.world.effects() == before

    @precondition(lambda self: self.world.runs)
    @rule(data=st.data(), place=st.sampled_from([None, None, 0, 1, 2]))
    def a_run_waits_or_runs(self, data: st.DataObject, place: int | None) -> None:
        uid = data.draw(st.sampled_from(sorted(self.world.runs)))
        event = DriverRuns() if place is None else RunQueued(queue_position=place)
        self.runner.receive(uid, self.world.runs[uid], event)
        self.acts()

    @precondition(lambda self: self.world.runs)
    @rule(data=st.data(), exit_code=st.sampled_from([0, 1]))
    def a_run_ends(self, data: st.DataObject, exit_code: int) -> None:
        self.ends_run(data.draw(st.sampled_from(sorted(self.world.runs))), exit_code)

    def ends_run(self, uid: str, exit_code: int) -> None:
        self.runner.receive(uid, self.world.runs.pop(uid), DriverEnded(exit_code=exit_code))
        self.acts()

    @rule(milliseconds=st.sampled_from([1, 500, 60_000, 180_000]))
    def time_passes(self, milliseconds: int) -> None:
        self.world.waited += milliseconds
        self.runner.tick()
        self.acts()

    @rule(away=st.sampled_from([False, False, True]), patient=st.booleans())
    def kafka_comes_and_goes(self, away: bool, patient: bool) -> None:
        self.world.away, self.patient = away, patient
        self.acts()

    @rule(how=st.sampled_from([None, None, None, "ends", "loses"]))
    def another_runner_takes_over(self, how: str | None) -> None:
        """The first one has ended; or it lost its partition, and is the next one too."""
        if how is None:
            return
        if how == "loses":
            before, stopped = [*self.world.answers], len(self.world.stopped)
            checks = list(self.world.checking)
            self.runner.release()
            assert not self.world.checking
            assert set(self.world.runs) <= set(self.world.stopped[stopped:])
            for check_id in checks:
                self.runner.finish_check(Checked(check_id=check_id))
            self.acts_no_more(before)
        self.world.checking.clear()
        runs = dict(self.world.runs)
        self.world.runs.clear()
        self.runner = runner_in(self.world)
        self.runner.adopt_answered(self.world.replies)
        for record in self.world.newest.values():
            self.runner.adopt(record)
        self.at, self.held = self.committed, None
        self.acts()
        for uid, epoch in runs.items():
            self.runner.receive(uid, epoch, DriverEnded(exit_code=137))
        self.acts()

    def acts_no_more(self, answers: list[tuple[str, str]]) -> None:
        effects = self.world.effects()
        self.runner.tick()
        self.runner.act()
        assert (self.world.answers, self.world.effects()) == (answers, effects)
        assert self.runner.open_commands() == set()
        assert self.runner.next_ready() is None

    def has_work(self) -> bool:
        waits = self.held is not None or self.at < len(self.world.log)
        return waits or self.runner.next_ready() is not None

    @invariant()
    def no_command_is_forgotten(self) -> None:
        """Those behind `committed` are never read again."""
        assert all(f"c{number}" in self.world.replies for number in range(self.committed))
        read = {each.id for each in self.world.log[: self.at]}
        assert read <= set(self.world.replies) | self.open_commands()

    @invariant()
    def what_is_checked_is_unanswered(self) -> None:
        assert set(self.world.checking) <= self.runner.open_commands()

    @invariant()
    def of_a_pipeline_the_first_open_command_is_checked(self) -> None:
        for checked in self.world.checking.values():
            earlier = self.world.log[: offset_of(checked)]
            same = [each for each in earlier if each.pipeline_uid == checked.pipeline_uid]
            assert not {each.id for each in same} & set(self.world.checking)

    def teardown(self) -> None:
        """Whatever has happened: in the end each command is answered, and what they say is so."""
        self.world.away, self.patient = False, True
        self.acts()
        for _ in range(3 * len(self.world.log) + 4):
            for check_id in list(self.world.checking):
                self.ends_check(check_id, "passed")
            self.turns()
            self.comes_to_rest()
        assert not self.has_work()
        assert set(self.world.replies) == {each.id for each in self.world.log}
        assert self.runner.open_commands() == set()
        for uid in PIPELINES:
            record = self.world.newest.get(uid)
            told = None if record is None else (record.desired, record.manifest.source)
            assert told == self.wanted(uid)

    def comes_to_rest(self) -> None:
        self.time_passes(60_000)
        for state in list(self.runner.states):
            uid = state.record.pipeline_uid
            if state.phase in STOPS:
                self.ends_run(uid, 0)
            elif uid in self.world.runs:
                for event in (RunQueued(queue_position=0), DriverRuns()):
                    self.runner.receive(uid, self.world.runs[uid], event)
                self.acts()

    def wanted(self, uid: str) -> tuple[str, str] | None:
        """By the commands that were not refused."""
        desired, text = None, None
        for sent in self.world.log:
            if sent.pipeline_uid != uid or not took_effect(self.world.replies[sent.id]):
                continue
            desired = {Action.STOP: "stopped", Action.DELETE: "deleted"}.get(sent.action, "running")
            sent_manifest = manifest_of(sent)
            text = text if sent_manifest is None else sent_manifest.source
        return None if desired is None or text is None else (desired, text)


def offset_of(command: Command) -> int:
    return int(command.id.removeprefix("c"))


def manifest_of(command: Command) -> AppliedManifest | None:
    return command.body.manifest if isinstance(command.body, Apply) else None


def took_effect(answer: Answer) -> bool:
    return answer.state is OperationState.DONE or answer.problem is Slug.SUPERSEDED


TestChecking = Checking.TestCase
TestChecking.settings = settings(patiently, stateful_step_count=50)
