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

    @property
    def topics(self) -> tuple[str, ...]:
        return (self.reads,)

    @property
    def outputs(self) -> frozenset[str]:
        return frozenset({self.writes})

    def has_passed(self, ends: Mapping[tuple[str, int], int]) -> bool:
        return all(self.position >= end for end in ends.values())

    def end_query(self) -> None:
        self.ended = True

    def process(self) -> None:
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


def drain(kafka: Kafka, rounds: Rounds, *stages: Stage, stop: RunControl | None = None) -> None:
    if stop is None:
        stop = RunControl()
        stop.stop(StopMode.DRAIN)
    Drain(cast("list[RunningStage]", stages), cast(Any, kafka)).run(cast(Watcher, rounds), stop)


@pytest.mark.parametrize("away", [0, 2])
def test_each_stage_ends_after_those_that_write_its_inputs(away: int) -> None:
    kafka = Kafka(ends={"orders": 10, "enriched": 0}, away=away)
    enrich = Stage("enrich", kafka, reads="orders", writes="enriched", step=4)
    load = Stage("load", kafka, reads="enriched", writes="lake")
    rounds = Rounds(kafka, load, enrich)
    drain(kafka, rounds, load, enrich)
    assert enrich.ended
    assert load.ended
    assert kafka.asked == ["orders", "enriched"], "the inner topic only when nobody writes there"
    assert 10 <= enrich.position < kafka.ends["orders"], "later records wait"
    assert load.position == enrich.position


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
    drain(kafka, rounds, stage, stop=stop)
    assert (rounds.count, stage.ended) == (3, False)


def test_a_weaker_request_changes_nothing() -> None:
    stop = RunControl()
    stop.stop(StopMode.CHECKPOINT)
    stop.stop(StopMode.DRAIN)
    assert stop.mode is StopMode.CHECKPOINT
