"""What watches a pipeline's stages sees how busy they are."""

import threading
from dataclasses import dataclass
from types import SimpleNamespace
from typing import cast

import pytest

from waybill_shared.contract.commands import StopMode
from waybill_shared.contract.driver_news import IgnoredFields, SinkWait
from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.contract.words import Obstacle
from waybill_spark.driver import watching
from waybill_spark.driver.app import RunningStage
from waybill_spark.driver.failures import StageFailed, cause_of
from waybill_spark.driver.pausing import Pausing
from waybill_spark.driver.reading import pace
from waybill_spark.driver.reading.blocking import OpenTransactions
from waybill_spark.driver.reading.ignored import Ignored
from waybill_spark.driver.run_control import PauseState, RunControl
from waybill_spark.driver.watching import KafkaWaits, Watcher

WITHIN_S = 120.0


class Stage:
    """One that runs and has no batch."""

    def __init__(self, stop: RunControl) -> None:
        self._stop = stop
        self._ignored = Ignored()
        self._ignored.count_unknown("readings", 3, ["field 'celcius' is no column"])
        self.pause_ms = 0

    def find_failure(self) -> None:
        return None

    def has_hidden_rows(self) -> bool:
        return False

    def readings(self) -> tuple[()]:
        return ()

    def waits(self) -> tuple[SinkWait, ...]:
        return ()

    def batches(self) -> int:
        return 0

    def watch(self) -> None:
        return None

    def unknown_fields(self) -> Ignored:
        return self._ignored

    def ask_every(self, pause_ms: int) -> None:
        self.pause_ms = pause_ms
        self._stop.stop(StopMode.CHECKPOINT)


class NoTransactions:
    def look(self, readings: object) -> None:
        return None


@dataclass
class Commits:
    blocked: Obstacle | None = None

    def look(self) -> Obstacle | None:
        return self.blocked


def watch(stage: Stage, stop: RunControl, told: list[tuple[IgnoredFields, ...]]) -> None:
    stages = [cast(RunningStage, stage)]
    pausing = Pausing((), stop, PauseState(paused=False, order=0), lambda pause: None)
    kafka = KafkaWaits(Commits(), cast(OpenTransactions, NoTransactions()))
    Watcher(stages, kafka, lambda word, waits: None, told.append).run(stop, pausing)


def test_stage_without_a_batch_asks_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "IDLE_AFTER_S", 0.0)
    stop = RunControl()
    stage = Stage(stop)
    late = threading.Timer(WITHIN_S, lambda: stop.stop(StopMode.CHECKPOINT))
    late.start()
    watch(stage, stop, [])
    late.cancel()
    assert stage.pause_ms == pace.IDLE_MS


def test_what_inputs_leave_out_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "SETTLE_INTERVAL_S", 0.0)
    monkeypatch.setattr(pace, "IDLE_AFTER_S", 0.5)  # a few turns
    stop = RunControl()
    told: list[tuple[IgnoredFields, ...]] = []
    late = threading.Timer(WITHIN_S, lambda: stop.stop(StopMode.CHECKPOINT))
    late.start()
    watch(Stage(stop), stop, told)
    late.cancel()
    warnings = ("field 'celcius' is no column",)
    assert told == [(IgnoredFields(input="readings", records=3, warnings=warnings),)]


def test_commits_that_kafka_does_not_accept_are_reported_until_it_does() -> None:
    commits, told = Commits(Obstacle.COMMITS_NOT_ACCEPTED), list[Obstacle | None]()
    kafka = KafkaWaits(commits, cast(OpenTransactions, NoTransactions()))
    watcher = Watcher([], kafka, lambda word, waits: told.append(word), lambda ignored: None)
    watcher.watch_once()
    watcher.watch_once()
    commits.blocked = None
    watcher.watch_once()
    assert told == [Obstacle.COMMITS_NOT_ACCEPTED, None]


class Orders:
    """Orders that fail at a stage."""

    def follow(self) -> None:
        raise StageFailed("load") from CAUSE


CAUSE = UserError([Problem(message="its table was dropped")])


@pytest.mark.parametrize("names", [["load"], ["other"]])
def test_orders_that_fail_at_a_stage_fail_that_stage_alone(names: list[str]) -> None:
    failed: list[tuple[str, Exception]] = []
    stages = [cast(RunningStage, SimpleNamespace(name=name)) for name in names]
    kafka = KafkaWaits(Commits(), cast(OpenTransactions, NoTransactions()))
    watcher = Watcher(
        stages, kafka, lambda word, waits: None, lambda ignored: None,
        fail=lambda stage, failure: failed.append((stage.name, failure)),
    )  # fmt: skip
    if names == ["other"]:
        with pytest.raises(StageFailed):
            watcher.follow(Orders())
        assert failed == []
        return
    watcher.follow(Orders())
    assert [(name, cause_of(failure)) for name, failure in failed] == [("load", CAUSE)]
