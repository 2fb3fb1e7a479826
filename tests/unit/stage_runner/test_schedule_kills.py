"""Times of a schedule, while runners die before and after anything that they write."""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from hypothesis import given, settings
from hypothesis import strategies as st

from strategies import patiently
from unit.stage_runner.fakes import UID, World, carry_out, command, receive, runner_in
from unit.stage_runner.scheduled import BEGIN, OVER, SECOND, manifest, turn
from waybill_shared.contract.events import Definition, PipelineRecord
from waybill_stage_runner.app.ports import Lease
from waybill_stage_runner.app.runner import Runner
from waybill_stage_runner.core.pipelines.events import DriverRuns
from waybill_stage_runner.core.pipelines.states import PipelineState

MINUTE = 60 * SECOND
Written = Literal["change", "begun", "replaced", "skipped", "claim"]


class Killed(Exception):
    """The runner is dead."""


@dataclass
class Kafka(World):
    """Remembers each transaction with a record. Its runner dies at one of them."""

    log: list[tuple[Written, PipelineRecord]] = field(default_factory=list)
    dies_in: int | None = None
    """After so many transactions, at the next one."""
    before: bool = False
    """True if that one is not written any more."""

    def change(self, record: PipelineRecord, definition: Definition | None) -> None:
        self.write("change", record)

    def claim(self, record: PipelineRecord) -> Lease:
        self.write("claim", record)
        return super().claim(record)

    def phase(self, state: PipelineState, phase_from: str, *, recorded: bool) -> None:
        if recorded:
            self.write("begun" if state.phase == "Starting" else "replaced", state.record)

    def skipped(self, state: PipelineState, reason: str) -> None:
        self.write("skipped", state.record)

    def write(self, what: Written, record: PipelineRecord) -> None:
        dies = self.dies_in == 0
        if self.dies_in is not None:
            self.dies_in -= 1
        if not (dies and self.before):
            self.log.append((what, record))
        if dies:
            raise Killed


class Story:
    """One pipeline with its runners, one after the other."""

    def __init__(self, concurrency: str) -> None:
        self.kafka = Kafka(now=BEGIN)
        self.runner: Runner = runner_in(self.kafka)
        said = manifest(f"{{every: 1 hour, concurrency: {concurrency}}}")
        carry_out(self.runner, command(1, manifest=said), 1)

    def turn(self, minutes: int) -> None:
        try:
            turn(self.kafka, self.runner, minutes * MINUTE)
        except Killed:
            self.take_over()

    def begin_run(self) -> None:
        """The driver that lives runs."""
        if UID in self.kafka.living:
            receive(self.runner, self.kafka.claims, DriverRuns())

    def end_run(self) -> None:
        """The driver has read all that there was, or has stopped, or was killed: the runner learns
        of its end.
        """
        if not next(iter(self.runner.states)).driver:
            return
        self.kafka.living.pop(UID, None)
        try:
            receive(self.runner, self.kafka.claims, *OVER)
        except Killed:
            self.take_over()

    def take_over(self) -> None:
        """Drivers die with their runner; another one finds what is written."""
        old = self.kafka
        self.kafka = Kafka(now=old.now, topics=old.topics, claims=old.claims, log=old.log)
        self.runner = runner_in(self.kafka)
        self.runner.adopt(old.log[-1][1])
        self.runner.act()


@given(
    concurrency=st.sampled_from(["forbid", "replace"]),
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("turn"), st.integers(1, 200)),
            st.tuples(st.sampled_from(["begin", "end"]), st.just(0)),
            st.tuples(st.sampled_from(["dies before", "dies after"]), st.integers(0, 4)),
        ),
        max_size=30,
    ),
)
@settings(patiently)
def test_each_time_counts_once_whenever_runners_die(
    concurrency: str, steps: list[tuple[str, int]]
) -> None:
    story = Story(concurrency)
    for step, number in steps:
        match step:
            case "turn":
                story.turn(number)
            case "begin":
                story.begin_run()
            case "end":
                story.end_run()
            case _:
                story.kafka.dies_in, story.kafka.before = number, step == "dies before"
    story.kafka.dies_in = None
    story.end_run()
    story.turn(0)
    story.end_run()
    story.turn(0)
    assert_each_time_counts_once(story.kafka.log, story.kafka.now)


def assert_each_time_counts_once(log: list[tuple[Written, PipelineRecord]], now: int) -> None:
    """What a time does is written with the time after it, and nothing else moves the times. Each
    run that begins so, or by replacing another, is claimed before the next one.
    """
    for (_, before), (what, after) in pairwise(log):
        assert before.next_run_at is not None
        assert after.next_run_at is not None
        counted = what in {"begun", "replaced", "skipped"}
        assert (after.next_run_at > before.next_run_at) is counted
        assert (after.next_run_at == before.next_run_at) is not counted
        assert (after.next_run_at - BEGIN) % (60 * MINUTE) == 0
    owed = False
    for what, record in log:
        assert not (owed and record.finished), "a time has come, and no run has begun"
        owed = what in {"begun", "replaced"} or (owed and what != "claim")
    assert not owed
    last = log[-1][1].next_run_at
    assert last is not None
    assert last > now, "a time that has come has counted"
