"""What a runner orders reaches its driver in order, and a stop reaches the run that it names."""

from collections.abc import Iterator
from queue import SimpleQueue

import pytest

from builders import applied
from integration.waiting import eventually
from waybill_shared.contract.commands import StopMode
from waybill_shared.contract.driver import (
    CheckOrder,
    EndOrder,
    Order,
    PauseOrder,
    StartStagesOrder,
    StopOrder,
)
from waybill_shared.contract.errors import Retryable
from waybill_spark.driver.orders import Orders, OrderUnknown
from waybill_spark.driver.run_control import PauseState, StageStarts

WAIT_S = 120.0
CHECK = CheckOrder(check_id="c1", pipeline_uid="uid", manifest=applied())


class Pipe:
    """The lines that a runner writes; it is there until it hangs up."""

    def __init__(self) -> None:
        self._lines: SimpleQueue[bytes | None] = SimpleQueue()

    def __iter__(self) -> Iterator[bytes]:
        while (line := self._lines.get()) is not None:
            yield line

    def say(self, order: Order) -> None:
        self.write(order.model_dump_json().encode() + b"\n")

    def write(self, line: bytes) -> None:
        self._lines.put(line)

    def hang_up(self) -> None:
        self._lines.put(None)


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    pipe = Pipe()
    yield pipe
    pipe.hang_up()


@pytest.fixture
def orders(pipe: Pipe) -> Orders:
    orders = Orders()
    orders.follow(pipe)
    return orders


def test_orders_come_one_after_the_other(orders: Orders, pipe: Pipe) -> None:
    later = CHECK.model_copy(update={"check_id": "c2"})
    pipe.say(CHECK)
    pipe.say(later)
    pipe.say(EndOrder())
    assert [orders.next(), orders.next(), orders.next()] == [CHECK, later, EndOrder()]


def test_whoever_asks_may_wait_for_the_next_order(orders: Orders, pipe: Pipe) -> None:
    assert not orders.has_order()
    assert not orders.has_order(0.01)
    pipe.say(CHECK)
    assert orders.has_order(WAIT_S)
    assert orders.has_order(), "it is still to be taken"
    assert orders.next() == CHECK


def test_stop_reaches_its_run_alone_also_before_it_has_begun(orders: Orders, pipe: Pipe) -> None:
    pipe.say(StopOrder(run_id="r1"))
    eventually(lambda: orders.control_of("r1").is_set(), within_s=WAIT_S)
    assert not orders.control_of("r2").is_set()


def test_the_newest_order_to_pause_reaches_its_run(orders: Orders, pipe: Pipe) -> None:
    pipe.say(PauseOrder(run_id="r1", paused=True, number=1))
    pipe.say(PauseOrder(run_id="r1", paused=False, number=2))
    newest = PauseState(paused=False, order=2)
    eventually(lambda: orders.control_of("r1").pause == newest, within_s=WAIT_S)
    assert not orders.control_of("r1").is_set()


def test_each_order_to_start_stages_reaches_its_run_once(orders: Orders, pipe: Pipe) -> None:
    pipe.say(StartStagesOrder(run_id="r1", stages=("load",), number=1))
    pipe.say(StartStagesOrder(run_id="r1", stages=("enrich", "load"), number=2))
    pipe.say(PauseOrder(run_id="r1", paused=True, number=1))
    control = orders.control_of("r1")
    eventually(lambda: control.pause is not None, within_s=WAIT_S)
    assert [control.next_starts() for _ in range(3)] == [
        StageStarts(("load",), 1), StageStarts(("enrich", "load"), 2), None,
    ]  # fmt: skip


@pytest.mark.parametrize("mode", StopMode)
def test_a_run_knows_how_it_is_to_stop(orders: Orders, pipe: Pipe, mode: StopMode) -> None:
    pipe.say(StopOrder(run_id="r1", mode=mode))
    eventually(lambda: orders.control_of("r1").is_set(), within_s=WAIT_S)
    assert orders.control_of("r1").mode is mode


def test_driver_whose_runner_is_gone_stops_its_run_and_ends(orders: Orders, pipe: Pipe) -> None:
    running = orders.control_of("r1")
    pipe.hang_up()
    assert running.wait(WAIT_S)
    assert orders.next() == EndOrder()
    assert orders.control_of("r2").is_set(), "nothing begins any more"


@pytest.mark.parametrize("line", [b"{}\n", b'{"kind": "dance"}\n', b"\xff\n"])
def test_line_that_nobody_knows_ends_the_driver(orders: Orders, pipe: Pipe, line: bytes) -> None:
    running = orders.control_of("r1")
    pipe.write(line)
    assert running.wait(WAIT_S)
    with pytest.raises(OrderUnknown):
        orders.next()


def test_what_makes_a_driver_useless_is_raised_where_it_waits(orders: Orders) -> None:
    orders.fail(Retryable("the JVM is gone"))
    with pytest.raises(Retryable, match="gone"):
        orders.next()
