"""A stage that is stopped, paused or failing replays nothing, and no other stage waits for it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import Empty, Queue
from typing import cast

import pytest

from unit.waybill_spark.graveyard import Graveyard
from unit.waybill_spark.letters import (
    AT,
    BOTH,
    REPLAYS,
    REPLAYS_ID,
    Letters,
    again,
    letter_replay,
)
from waybill_shared.contract.vectors import Vector
from waybill_shared.contract.words import StopReason
from waybill_spark.driver import replays
from waybill_spark.driver.app import RunningStage
from waybill_spark.driver.going import RunStages
from waybill_spark.driver.replays import ReplayThread
from waybill_spark.tracking.replaying import Letter, Replays
from waybill_spark.tracking.rewinding import Replacing
from waybill_spark.tracking.stopping import StageStopped

WAIT_S = 60.0
OWN = StageStopped(StopReason.DEAD_LETTER_BUDGET, "too many", "start it")


@dataclass
class Messages:
    """The messages of the pipeline, as one stage reads them."""

    topic: Sequence[Letter]
    next: int = 0

    def start(self, replayed: Sequence[Vector]) -> Replays:
        self.next = min(each.get(AT, 0) for each in replayed)
        return Replays(topic=REPLAYS, topic_id=REPLAYS_ID, partition=AT[1], letters=[], end=0)

    def read(self) -> Replays | None:
        new = [each for each in self.topic if each.offset >= self.next]
        if not new:
            return None
        self.next = new[-1].offset + 1
        return Replays(
            topic=REPLAYS, topic_id=REPLAYS_ID, partition=AT[1], letters=new, end=self.next
        )


class Stage:
    """A stage of a run with a real `TrackedStage`, and without a query."""

    put_aside = 0

    def __init__(self, name: str, run: "Run") -> None:
        self.name, self.key = name, f"{name}@1"
        self._run = run
        self._letters = Letters(run.sinks[name])
        self._tracked = run.sinks[name].stage()
        self._replays = ReplayThread(self, Messages(run.topic))

    def open(self) -> None:
        """It is open since it was made."""

    def report_losses(self) -> None:
        self._tracked.report_losses()

    def start_replays(self) -> None:
        self._replays.start()

    def start(self) -> None:
        """It has no query."""

    def replays_done(self) -> Sequence[Vector]:
        return self._tracked.replays_done()

    def replay(self, replays: Replays) -> None:
        try:
            self._tracked.replay(replays, self._letters)
        except StageStopped as failure:
            self._run.events.put((self.name, failure))
            raise
        if replays.letters:
            self._run.events.put((self.name, None))

    def set_paused(self, *, paused: bool) -> None:
        self._tracked.gate.set_paused(paused=paused)

    def move_claims(self) -> None:
        self._tracked.move_claims()

    def keep_out_earlier(self) -> None:
        self._tracked.move_claims()

    def end_query(self) -> None:
        self._replays.stop()
        self._tracked.close()

    def stop(self) -> None:
        self.end_query()
        self._replays.join(WAIT_S)

    def has_hidden_rows(self) -> bool:
        return False


@dataclass
class Run:
    """A run of the stages `a` and `b`, whose letters 0 to 9 are dead."""

    folder: Path
    topic: list[Letter] = field(default_factory=list)
    events: "Queue[tuple[str, StageStopped | None]]" = field(default_factory=Queue)
    """Which stage has replayed its letters, or why it could not."""

    def __post_init__(self) -> None:
        self.sinks = {name: Graveyard(self.folder / name) for name in ("a", "b")}

    @contextmanager
    def stages(self) -> Iterator[RunStages]:
        stages = RunStages(lambda name: cast(RunningStage, Stage(name, self)), lambda *_: None)
        stages.add(self.sinks)
        for stage in stages.going:
            stage.start_replays()
        try:
            yield stages
        finally:
            stages.close()

    def ask(self, *names: str) -> None:
        for name in names:
            offset = len(self.topic)
            asked = replace(letter_replay(offset, BOTH), stage=f"{name}@1")
            self.topic.append(Letter(offset=offset, asked=asked))

    def await_event(self) -> tuple[str, StageStopped | None]:
        return self.events.get(timeout=WAIT_S)

    def counts(self, name: str, *offsets: int) -> list[int]:
        return again(self.sinks[name].first, offsets)


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replays, "ROUND_S", 0.001)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


def of(stages: RunStages, name: str) -> RunningStage:
    return next(stage for stage in stages.going if stage.name == name)


def test_a_stage_that_is_stopped_ends_no_replays_of_others(run: Run) -> None:
    with run.stages() as stages:
        stages.fail(of(stages, "a"), OWN)
        run.ask("a", "b", "a", "b")
        while run.counts("b", 1, 3) != [1, 1]:
            assert run.await_event() == ("b", None)
    assert run.counts("a", 0, 2) == [0, 0]


def test_a_letter_of_a_stopped_stage_waits_until_it_starts(run: Run) -> None:
    with run.stages() as stages:
        run.ask("a", "b")
        assert {run.await_event(), run.await_event()} == {("a", None), ("b", None)}
        stages.fail(of(stages, "a"), OWN)
        run.ask("a", "b")
        assert run.await_event() == ("b", None)
        assert run.counts("a", 0, 2) == [1, 0]
        stages.start("a", paused=False)
        assert run.await_event() == ("a", None)
        run.ask("a", "b")
        assert {run.await_event(), run.await_event()} == {("a", None), ("b", None)}
    assert run.counts("a", 0, 2, 4) == [1, 1, 1]
    assert run.counts("b", 1, 3, 5) == [1, 1, 1]


def test_a_replay_that_fails_stops_its_stage_alone(run: Run) -> None:
    with run.stages() as stages:
        stages.fail(of(stages, "a"), OWN)
        run.sinks["a"].replacing = {"first": Replacing.BY_BATCH}
        stages.start("a", paused=False)
        run.ask("a")
        name, failure = run.await_event()
        assert name == "a"
        assert failure is not None
        stages.fail(of(stages, "a"), failure)
        run.ask("b")
        assert run.await_event() == ("b", None)
        run.sinks["a"].replacing = {}
        stages.start("a", paused=False)
        assert run.await_event() == ("a", None)
    assert run.counts("a", 0) == [1]
    assert run.counts("b", 1) == [1]


def test_a_letter_of_a_paused_stage_waits_and_others_go_on(run: Run) -> None:
    with run.stages() as stages:
        stages.fail(of(stages, "a"), OWN)
        run.ask("a")
        stages.start("a", paused=True)
        run.ask("b")
        assert run.await_event() == ("b", None)
        assert run.counts("a", 0) == [0]
        with pytest.raises(Empty):
            run.events.get_nowait()
        of(stages, "a").set_paused(paused=False)
        assert run.await_event() == ("a", None)
    assert run.counts("a", 0) == [1]
