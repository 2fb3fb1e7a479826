"""When stages start batches, and how often a pipeline that has nothing to do asks Kafka for news.

Spark asks a hundred times a second, for as long as there is none: a tenth of a core for each stage,
and half of that in the broker.
"""

from collections.abc import Callable, Sequence
from typing import Final, Protocol, assert_never

from py4j.java_gateway import JavaObject
from pyspark.sql.streaming import DataStreamWriter

from waybill_shared.contract.manifest.triggers import AvailableNow, Interval, Once, Trigger

IDLE_AFTER_S: Final = 2.0
BUSY_MS: Final = 10  # as Spark does
IDLE_MS: Final = 100


class Paced(Protocol):
    """A stage, as this sees it."""

    def batches(self) -> int: ...

    def ask_every(self, pause_ms: int) -> None: ...


class Pace:
    """One for all stages of a pipeline: a batch of one of them is soon news for the next."""

    def __init__(self, stages: Sequence[Paced], now: Callable[[], float]) -> None:
        self._stages = stages
        self._now = now
        self._batches = 0
        self._idle_at = now() + IDLE_AFTER_S
        self._pause_ms = BUSY_MS

    def look(self) -> None:
        batches = sum(stage.batches() for stage in self._stages)
        if batches != self._batches:
            self._batches = batches
            self._idle_at = self._now() + IDLE_AFTER_S
        pause_ms = BUSY_MS if self._now() < self._idle_at else IDLE_MS
        if pause_ms != self._pause_ms:
            self._pause_ms = pause_ms
            for stage in self._stages:
                stage.ask_every(pause_ms)


def interval_ms(trigger: Trigger) -> int:
    """Return how long a trigger lets pass between two batches, at least."""
    return trigger.ms if isinstance(trigger, Interval) else 0


def set_pause(execution: JavaObject, pause_ms: int) -> None:
    """Set the pause of a running query.

    `spark.sql.streaming.pollingDelay` counts at its start only.
    """
    pause = execution.getClass().getSuperclass().getDeclaredField("pollingDelayMs")
    pause.setAccessible(True)
    pause.setLong(execution, pause_ms)


def set_trigger(writer: DataStreamWriter, trigger: Trigger) -> DataStreamWriter:
    """Set when Spark starts batches of the query that `writer` describes.

    `once` has one batch because its source has no bound. After a crash Spark's own trigger of that
    name would run the unfinished batch alone, and leave what came after it.
    """
    match trigger:
        case Interval(ms):
            return writer.trigger(processingTime=f"{ms} milliseconds")
        case AvailableNow() | Once():
            return writer.trigger(availableNow=True)
        case _:
            assert_never(trigger)
