"""A pipeline without work asks less often, and all of it wakes with the first batch."""

from dataclasses import dataclass, field
from typing import cast

import pytest
from pyspark.sql.streaming import DataStreamWriter

from waybill_shared.contract.manifest.triggers import (
    AvailableNow,
    Interval,
    Once,
    Trigger,
    describe,
)
from waybill_spark.driver.reading.pace import BUSY_MS, IDLE_AFTER_S, IDLE_MS, Pace, set_trigger


@dataclass
class Stage:
    begun: int = 0
    pauses: list[int] = field(default_factory=list)

    def batches(self) -> int:
        return self.begun

    def ask_every(self, pause_ms: int) -> None:
        self.pauses.append(pause_ms)


class Pipeline:
    def __init__(self) -> None:
        self.stages = [Stage(), Stage()]
        self.now = 100.0
        self._pace = Pace(self.stages, lambda: self.now)

    def after(self, seconds: float) -> None:
        self.now += seconds
        self._pace.look()

    def pauses(self) -> list[int]:
        first, second = self.stages
        assert first.pauses == second.pauses
        return first.pauses


@pytest.fixture
def pipeline() -> Pipeline:
    return Pipeline()


def test_without_a_batch_it_asks_less_often(pipeline: Pipeline) -> None:
    pipeline.after(IDLE_AFTER_S - 0.1)
    assert pipeline.pauses() == []
    pipeline.after(0.1)
    assert pipeline.pauses() == [IDLE_MS]


def test_what_is_so_is_not_said_again(pipeline: Pipeline) -> None:
    for _ in range(10):
        pipeline.after(IDLE_AFTER_S)
    assert pipeline.pauses() == [IDLE_MS]


def test_a_batch_of_one_stage_wakes_all(pipeline: Pipeline) -> None:
    pipeline.after(IDLE_AFTER_S)
    pipeline.stages[1].begun += 1
    pipeline.after(0.2)
    assert pipeline.pauses() == [IDLE_MS, BUSY_MS]


def test_with_batch_after_batch_it_never_rests(pipeline: Pipeline) -> None:
    for _ in range(10):
        pipeline.stages[0].begun += 1
        pipeline.after(IDLE_AFTER_S - 0.1)
    assert pipeline.pauses() == []


def test_it_rests_again_when_the_last_batch_is_old(pipeline: Pipeline) -> None:
    pipeline.stages[0].begun += 1
    pipeline.after(0.2)
    pipeline.after(IDLE_AFTER_S)
    assert pipeline.pauses() == [IDLE_MS]


class Writer:
    """A description of a query that keeps its trigger."""

    def trigger(self, **options: object) -> dict[str, object]:
        return options


@pytest.mark.parametrize(
    ("trigger", "options", "words"),
    [
        (Interval(500), {"processingTime": "500 milliseconds"}, "500 ms"),
        (AvailableNow(), {"availableNow": True}, "availableNow"),
        (Once(), {"availableNow": True}, "once"),
    ],
)
def test_each_trigger_is_one_of_spark(
    trigger: Trigger, options: dict[str, object], words: str
) -> None:
    query: object = set_trigger(cast(DataStreamWriter, Writer()), trigger)
    assert query == options
    assert describe(trigger) == words
