"""A run that ends by itself: stage by stage, when all that there was is read and reported."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

import pytest

from waybill_shared.contract.commands import StopMode
from waybill_shared.contract.words import StopReason
from waybill_spark.driver import ending
from waybill_spark.driver.app import RunningStage
from waybill_spark.driver.ending import Ending
from waybill_spark.driver.failures import StageFailed
from waybill_spark.driver.going import RunStages
from waybill_spark.driver.pausing import PausableStage, Pausing
from waybill_spark.driver.run_control import PauseState, RunControl
from waybill_spark.driver.watching import FollowsOrders, Watcher
from waybill_spark.tracking.stopping import StageStopped

OWN = StageStopped(StopReason.DEAD_LETTER_BUDGET, "too many", "start it")


@dataclass
class Stage:
    """A stage with so many rounds of batches."""

    name: str
    reads: frozenset[str]
    outputs: frozenset[str]
    log: list[str]
    batches_left: int = 2
    hidden_for: int = 0
    running: bool = False
    paused: bool = False
    put_aside: int = 0
    starts: StageStopped | None = None
    replayed: bool = True

    def has_replayed(self) -> bool:
        return self.replayed

    def start(self) -> None:
        if self.starts is not None:
            raise self.starts
        self.log.append(f"{self.name} starts")
        self.running = True

    def end_query(self) -> None:
        self.running = False

    def keep_out_earlier(self) -> None: ...

    def watch(self) -> None:
        self.log.append(f"{self.name} is looked at")

    def has_ended(self) -> bool:
        return self.running and self.batches_left <= 0

    def has_hidden_rows(self) -> bool:
        return self.has_ended() and self.hidden_for > 0

    @property
    def is_paused(self) -> bool:
        return self.paused

    def set_paused(self, *, paused: bool) -> None:
        self.paused = paused

    def move_claims(self) -> None:
        return None

    def process(self) -> None:
        if self.paused:
            return
        if self.has_ended():
            self.hidden_for -= 1
        elif self.running:
            self.batches_left -= 1
            self.log.append(f"{self.name} writes")


@dataclass
class Rounds:
    """In place of the watcher: in each look the stages process."""

    stages: list[Stage]
    each: Callable[[int], None] = lambda _: None
    count: int = 0

    def follow(self, orders: FollowsOrders) -> None:
        orders.follow()

    def watch_once(self) -> None:
        self.count += 1
        assert self.count < 100, "it has no end"
        self.each(self.count)
        for stage in self.stages:
            stage.process()


@dataclass
class Commits:
    """Kafka has all commits after so many questions."""

    away: int = 0
    asked: int = field(default=0, init=False)

    def has_all(self) -> bool:
        self.asked += 1
        return self.asked > self.away


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ending, "ROUND_S", 0.0)


def made(*stages: Stage) -> RunStages:
    by_name = {stage.name: cast(RunningStage, stage) for stage in stages}
    run = RunStages(by_name.__getitem__, lambda name, cause, put_aside: None)
    run.add(by_name)
    return run


def run(
    *stages: Stage,
    going: RunStages | None = None,
    commits: Commits | None = None,
    control: RunControl | None = None,
    each: Callable[[int], None] = lambda _: None,
    paused: bool = False,
) -> bool:
    run = Ending(going or made(*stages), commits or Commits())
    rounds = Rounds(list(stages), each)
    control = control or RunControl()
    first = PauseState(paused, order=0)
    pausing = Pausing(cast("list[PausableStage]", stages), control, first, lambda _: None)
    return run.run(cast(Watcher, rounds), control, pausing)


def chain(log: list[str]) -> tuple[Stage, Stage]:
    enrich = Stage("enrich", frozenset({"T1"}), frozenset({"T2"}), log)
    return enrich, Stage("load", frozenset({"T2"}), frozenset(), log)


def test_a_stage_starts_when_those_before_it_have_ended_and_can_be_read() -> None:
    log: list[str] = []
    enrich, load = chain(log)
    enrich.hidden_for = 3
    assert run(load, enrich)
    assert log == [
        *("enrich starts", "enrich writes", "enrich writes"),
        *("load starts", "load writes", "load writes"),
    ]
    assert enrich.hidden_for <= 0, "its readers could see all before"


def test_no_stage_starts_before_all_have_replayed_what_there_was() -> None:
    log: list[str] = []
    enrich, load = chain(log)
    load.replayed = False

    def each(count: int) -> None:
        if count == 3:
            assert not log
            load.replayed = True

    assert run(enrich, load, each=each)
    assert log[0] == "enrich starts"


def test_stages_that_need_nothing_of_each_other_run_at_the_same_time() -> None:
    log: list[str] = []
    first = Stage("first", frozenset({"T1"}), frozenset(), log)
    second = Stage("second", frozenset({"T1"}), frozenset(), log)
    assert run(first, second)
    assert log[:2] == ["first starts", "second starts"]


def test_it_has_not_finished_before_its_rows_can_be_seen_and_kafka_has_its_commits() -> None:
    stage = Stage("load", frozenset({"T1"}), frozenset(), [], hidden_for=5)
    commits = Commits(away=4)
    assert run(stage, commits=commits)
    assert stage.hidden_for <= 0
    assert commits.asked == 5


def test_stages_with_nothing_to_read_finish_too() -> None:
    log: list[str] = []
    enrich, load = chain(log)
    enrich.batches_left = load.batches_left = 0
    assert run(enrich, load)
    assert log == ["enrich starts", "load starts"]


@pytest.mark.parametrize("mode", [StopMode.DRAIN, StopMode.CHECKPOINT])
def test_a_stop_ends_it_before(mode: StopMode) -> None:
    log: list[str] = []
    enrich, load = chain(log)
    control = RunControl()
    assert not run(enrich, load, control=control, each=lambda _: control.stop(mode))
    assert "load starts" not in log


def test_a_stage_that_fails_ends_the_run() -> None:
    def fail(count: int) -> None:
        if count == 2:
            raise StageFailed("enrich")

    with pytest.raises(StageFailed):
        run(*chain([]), each=fail)


def test_a_stage_that_stops_by_itself_counts_as_one_that_has_ended() -> None:
    log: list[str] = []
    enrich, load = chain(log)
    going = made(enrich, load)

    def stop(count: int) -> None:
        if count == 2:
            going.fail(going.going[0], OWN)

    assert run(enrich, load, going=going, each=stop)
    assert log == ["enrich starts", "enrich writes", "load starts", "load writes", "load writes"]


def test_a_stage_that_cannot_be_started_lets_the_others_end() -> None:
    log: list[str] = []
    enrich, load = chain(log)
    enrich.starts = OWN
    assert run(enrich, load)
    assert log == ["load starts", "load writes", "load writes"]


@pytest.mark.parametrize("first", [False, True], ids=["ordered", "from the beginning"])
def test_no_stage_starts_while_it_is_paused(first: bool) -> None:
    """What a stage reads is decided when it starts: records of the pause are among it."""
    log: list[str] = []
    enrich, load = chain(log)
    control = RunControl()
    if not first:
        control.set_paused(PauseState(paused=True, order=1))

    def resume(count: int) -> None:
        if count == 5:
            assert log == []
            control.set_paused(PauseState(paused=False, order=2))

    assert run(enrich, load, control=control, each=resume, paused=first)
    assert log[0] == "enrich starts"
    assert log[-1] == "load writes"


def test_no_later_stage_starts_while_it_is_paused() -> None:
    log: list[str] = []
    enrich, load = chain(log)
    enrich.batches_left = 0
    control = RunControl()

    def pause(count: int) -> None:
        if count == 1:
            control.set_paused(PauseState(paused=True, order=1))
        if count == 5:
            assert log == ["enrich starts"]
            control.set_paused(PauseState(paused=False, order=2))

    assert run(enrich, load, control=control, each=pause)
    assert log[1] == "load starts"
