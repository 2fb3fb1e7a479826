"""A drain ends stage after stage, each when its sinks have all that its inputs contained."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from waybill_shared.contract.commands import StopMode
from waybill_shared.contract.errors import Retryable
from waybill_spark.driver import draining
from waybill_spark.driver.app import RunningStage
from waybill_spark.driver.draining import Drain
from waybill_spark.driver.run_control import RunControl
from waybill_spark.driver.watching import Watcher


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    topic_id: str
    partitions: tuple[int, ...] = (0,)


@dataclass
class Kafka:
    """The ends of topics, each with one partition. The name of a topic is its id, too."""

    ends: dict[str, int]
    away: int = 0  # so many questions have no answer
    asked: list[str] = field(default_factory=list)

    def identify(self, topics: Iterable[str]) -> dict[str, Topic]:
        if self.away:
            self.away -= 1
            raise Retryable("Kafka is away")
        return {topic: Topic(topic_id=topic) for topic in topics}

    def stable_ends(self, topic: str, partitions: Iterable[int]) -> Mapping[int, int]:
        self.asked.append(topic)
        return dict.fromkeys(partitions, self.ends[topic])


@dataclass
class Stage:
    """A stage that processes `step` records of its input in each round."""

    name: str
    kafka: Kafka
    reads: str
    writes: str
    step: int = 1
    position: int = 0
    ended: bool = False
    resting: bool = False
    """True if its query has not started, or has ended by itself."""
    hidden_for: int = 0
    """So many looks find what it wrote hidden."""
    starts: int = 0

    @property
    def topics(self) -> tuple[str, ...]:
        return (self.reads,)

    @property
    def outputs(self) -> frozenset[str]:
        return frozenset({self.writes})

    def lacks(self, ends: Mapping[tuple[str, int], int]) -> bool:
        return any(self.position < end for end in ends.values())

    def has_passed(self, ends: Mapping[tuple[str, int], int]) -> bool:
        if self.lacks(ends):
            return False
        self.hidden_for -= 1
        return self.hidden_for < 0

    def waits_for_start(self) -> bool:
        return self.resting

    def start(self) -> None:
        self.starts += 1
        self.resting = False

    def end_query(self) -> None:
        self.ended = True

    def process(self) -> None:
        if self.resting:
            return
        done = min(self.step, self.kafka.ends[self.reads] - self.position)
        self.position += done
        self.kafka.ends[self.writes] = self.kafka.ends.get(self.writes, 0) + done


class Rounds:
    """In place of the watcher: each look is a round, in which stages process and records come."""

    def __init__(self, kafka: Kafka, *stages: Stage) -> None:
        self.watched = list(stages)
        self.count = 0
        self._kafka = kafka

    def leave_out(self, stage: Stage) -> None:
        self.watched.remove(stage)

    def watch_once(self) -> None:
        self.count += 1
        assert self.count < 100, "it has no end"
        self._kafka.ends["orders"] += 1
        for stage in self.watched:
            stage.process()


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draining, "ROUND_S", 0.0)


def drain(kafka: Kafka, rounds: Rounds, *stages: Stage, stop: RunControl | None = None) -> bool:
    if stop is None:
        stop = RunControl()
        stop.stop(StopMode.DRAIN)
    going = Drain(cast("list[RunningStage]", stages), cast(Any, kafka))
    return going.run(cast(Watcher, rounds), stop)


@pytest.mark.parametrize("away", [0, 2])
def test_each_stage_ends_after_those_that_write_its_inputs(away: int) -> None:
    kafka = Kafka(ends={"orders": 10, "enriched": 0}, away=away)
    enrich = Stage("enrich", kafka, reads="orders", writes="enriched", step=4)
    load = Stage("load", kafka, reads="enriched", writes="lake")
    rounds = Rounds(kafka, load, enrich)
    assert drain(kafka, rounds, load, enrich), "it reports that all is drained"
    assert enrich.ended
    assert load.ended
    assert kafka.asked == ["orders", "enriched"], "the inner topic only when nobody writes there"
    assert 10 <= enrich.position < kafka.ends["orders"], "later records wait"
    assert load.position == enrich.position


def test_stages_that_have_not_started_or_have_ended_are_started_in_turn() -> None:
    kafka = Kafka(ends={"orders": 10, "enriched": 0})
    enrich = Stage("enrich", kafka, "orders", "enriched", step=4, position=6, resting=True)
    load = Stage("load", kafka, "enriched", "lake", resting=True)
    rounds = Rounds(kafka, load, enrich)
    drain(kafka, rounds, load, enrich)
    assert (enrich.starts, load.starts) == (1, 1)
    assert enrich.position >= 10
    assert load.position == enrich.position - 6


def test_a_stage_that_has_ended_is_not_started_again_for_rows_that_are_hidden() -> None:
    kafka = Kafka(ends={"orders": 10})
    stage = Stage("enrich", kafka, "orders", "lake", position=10, resting=True, hidden_for=3)
    drain(kafka, Rounds(kafka, stage), stage)
    assert (stage.ended, stage.starts) == (True, 0)


def test_a_stronger_stop_ends_it_at_once() -> None:
    kafka = Kafka(ends={"orders": 10_000, "enriched": 0})
    stage = Stage("enrich", kafka, reads="orders", writes="enriched", step=0)
    stop = RunControl()
    stop.stop(StopMode.DRAIN)

    class Overtaken(Rounds):
        def watch_once(self) -> None:
            super().watch_once()
            if self.count == 3:
                stop.stop(StopMode.CHECKPOINT)

    rounds = Overtaken(kafka, stage)
    assert not drain(kafka, rounds, stage, stop=stop)
    assert (rounds.count, stage.ended) == (3, False)


def test_a_weaker_request_changes_nothing() -> None:
    stop = RunControl()
    stop.stop(StopMode.CHECKPOINT)
    stop.stop(StopMode.DRAIN)
    assert stop.mode is StopMode.CHECKPOINT
