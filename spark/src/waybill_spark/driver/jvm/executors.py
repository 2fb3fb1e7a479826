"""Watches whether a cluster computes for this driver: Spark itself would wait without a word."""

import threading
import time
from collections.abc import Callable
from typing import Final, Protocol

import pyspark
from pyspark.sql import SparkSession

from waybill_shared.contract.driver import SparkPlace
from waybill_shared.contract.words import Obstacle
from waybill_spark.driver.jvm.cluster import LOGS, ClusterUnavailable

LASTS_S: Final = 2.0  # an executor that is replaced at once is nobody's concern
PATIENCE_S: Final = 60.0  # then a new driver asks: a master that was replaced knows no old one
POLL_S: Final = 0.1


class Application(Protocol):
    def executors(self) -> int | None:
        """Return how many executors compute for it now; None if the cluster has ended it."""

    def cancel(self) -> None:
        """Give up all that is being computed."""


class SparkApplication:
    def __init__(self, spark: SparkSession) -> None:
        self._context = spark.sparkContext

    def executors(self) -> int | None:
        context = self._context._jsc.sc()
        if context.isStopped():
            return None
        return int(context.getExecutorMemoryStatus().size()) - 1  # one is the driver's own

    def cancel(self) -> None:
        self._context.cancelAllJobs()


class Executors:
    def __init__(
        self,
        application: Application,
        place: SparkPlace,
        *,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._application = application
        self._place = place
        self._now_s = now_s
        self._since_s: float | None = None

    def await_first(self, stop: threading.Event, report: Callable[[Obstacle | None], None]) -> None:
        reported = None
        while not self._application.executors() and not stop.wait(POLL_S):
            word = self.look()
            if word != reported:
                report(word)
            reported = word
        if reported is not None:
            report(None)

    def look(self) -> Obstacle | None:
        """Return NO_SPARK_EXECUTOR if there has been none for a while.

        Raise ClusterUnavailable if that lasts long.
        """
        count = self._application.executors()
        if count is None:
            raise self._as_unavailable()
        if count:
            self._since_s = None
            return None
        now_s = self._now_s()
        self._since_s = now_s if self._since_s is None else self._since_s
        if now_s - self._since_s >= PATIENCE_S:
            raise self._none()
        return Obstacle.NO_SPARK_EXECUTOR if now_s - self._since_s >= LASTS_S else None

    def give_up(self) -> None:
        """Cancel the jobs if there are no executors.

        Whoever stops a stage waits for its batch, which nobody computes without them.
        """
        if self._application.executors() == 0:
            self._application.cancel()

    def _as_unavailable(self) -> ClusterUnavailable:
        message = f"{self._place.master} has ended the application"
        return ClusterUnavailable(message, hint=f"{LOGS}; it is tried again")

    def _none(self) -> ClusterUnavailable:
        place = self._place
        reached_at = place.driver_host or "the address that reaches its master"
        hint = (
            f"see on the master's page that a worker has a free core and {place.executor_memory} of"
            f" memory (WAYBILL_SPARK_CORES_MAX, WAYBILL_SPARK_EXECUTOR_MEMORY), runs Spark"
            f" {pyspark.__version__}, and reaches this driver at {reached_at}"
            " (WAYBILL_SPARK_DRIVER_HOST); it is tried again"
        )
        message = f"{place.master} gave no executor for {PATIENCE_S:.0f} s"
        return ClusterUnavailable(message, hint=hint)
