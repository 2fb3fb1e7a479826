"""What watches a pipeline's stages sees how busy they are."""

import threading
from typing import cast

import pytest

from waybill_spark.driver import pace
from waybill_spark.driver.app import RunningStage
from waybill_spark.driver.blocking import OpenTransactions
from waybill_spark.driver.watching import Watcher

WITHIN_S = 10.0


class Stage:
    """One that runs and has no batch."""

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop
        self.pause_ms = 0

    def failed(self) -> None:
        return None

    def hidden(self) -> bool:
        return False

    def readings(self) -> tuple[()]:
        return ()

    def batches(self) -> int:
        return 0

    def ask_every(self, pause_ms: int) -> None:
        self.pause_ms = pause_ms
        self._stop.set()


class NoTransactions:
    def look(self, readings: object) -> None:
        return None


def test_stage_without_a_batch_asks_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "IDLE_AFTER_S", 0.0)
    stop = threading.Event()
    stage = Stage(stop)
    late = threading.Timer(WITHIN_S, stop.set)
    late.start()
    stages = [cast(RunningStage, stage)]
    Watcher(stages, cast(OpenTransactions, NoTransactions()), lambda word: None).run(stop)
    late.cancel()
    assert stage.pause_ms == pace.IDLE_MS
