"""When a driver warms up."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest
from pyspark.sql import SparkSession

from waybill_shared.contract.driver import DriverEvent, DriverHome, SinkPlaces, SparkPlace
from waybill_spark.driver import worker
from waybill_spark.driver.orders import Next, Orders
from waybill_spark.driver.run import Engine
from waybill_spark.driver.worker import Worker

SOON_S = 0.1


@pytest.fixture
def warmed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The steps that were gone through."""
    steps: list[str] = []

    def warm_up(*_: object) -> Iterator[Callable[[], None]]:
        yield lambda: steps.append("first")
        yield lambda: steps.append("second")

    monkeypatch.setattr(worker, "warm_up", warm_up)
    return steps


class NobodyElse(Orders):
    """The only order is to end, once somebody asks for one."""

    def next(self) -> Next:
        self.end()
        return super().next()


def serve(folder: Path, orders: Orders, tell: Callable[[DriverEvent], None]) -> bool:
    place = SparkPlace(
        master="local[2]",
        cores_max=1,
        executor_memory="1g",
        heap="1g",
        driver_host=None,
        driver_port=0,
        executor_python=None,
        conf_file=None,
    )
    home = DriverHome(
        name="waybill",
        folder=folder,
        java=folder,
        spark_jars=folder,
        spark_archives=folder,
        spark=place,
        sql_guard="strict",
        topic_prefix="waybill",
        places=SinkPlaces(lakehouse_folder=folder),
    )
    engine = Engine(session=cast("SparkSession", None), place=place)
    return Worker(home, engine, "kafka:9092", orders, tell).serve()


def test_a_driver_that_somebody_waits_for_does_not_warm_up_first(
    tmp_path: Path, warmed: list[str]
) -> None:
    orders = Orders()

    def order(event: DriverEvent) -> None:
        assert event.kind == "ready"
        threading.Timer(SOON_S, orders.end).start()

    assert serve(tmp_path, orders, order)
    assert warmed == []


def test_a_driver_that_nobody_waits_for_warms_up(
    tmp_path: Path, warmed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "FIRST_ORDER_S", SOON_S)
    assert serve(tmp_path, NobodyElse(), lambda _: None)
    assert warmed == ["first", "second"]
