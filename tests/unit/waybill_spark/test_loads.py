"""Loads of one batch: all at the same time, all to their end, and the first failure is told."""

import threading
from collections.abc import Iterator
from contextlib import closing
from functools import partial

import pytest

from waybill_shared.contract.errors import Retryable
from waybill_spark.tracking.loads import ParallelLoads

WAIT_S = 120.0


@pytest.fixture
def loads() -> Iterator[ParallelLoads]:
    with closing(ParallelLoads(3)) as made:
        yield made


def test_loads_run_at_the_same_time(loads: ParallelLoads) -> None:
    together = threading.Barrier(3)

    def load() -> None:
        together.wait(WAIT_S)

    loads.run(dict.fromkeys("abc", load))


def test_a_failure_waits_for_the_others(loads: ParallelLoads) -> None:
    failed, done = threading.Event(), threading.Event()

    def fails() -> None:
        failed.set()
        raise ValueError("first")

    def goes_on() -> None:
        assert failed.wait(WAIT_S)
        done.set()

    with pytest.raises(ValueError, match="first"):
        loads.run({"a": fails, "b": goes_on})
    assert done.is_set()


def test_of_two_failures_one_is_raised_and_one_is_logged(
    loads: ParallelLoads, caplog: pytest.LogCaptureFixture
) -> None:
    together = threading.Barrier(2)

    def fails(sink: str) -> None:
        together.wait(WAIT_S)
        raise ValueError(sink)

    with pytest.raises(ValueError, match=r"a|b") as raised:
        loads.run({sink: partial(fails, sink) for sink in "ab"})
    logged = [record.__dict__["sink"] for record in caplog.records]
    assert sorted([*logged, str(raised.value)]) == ["a", "b"]


def test_one_load_runs_where_it_is_asked_for(loads: ParallelLoads) -> None:
    ran: list[int] = []
    loads.run({"only": lambda: ran.append(threading.get_ident())})
    assert ran == [threading.get_ident()]


def test_what_no_other_try_would_mend_is_raised_before_what_may_pass(loads: ParallelLoads) -> None:
    away = threading.Event()

    def is_away() -> None:
        away.set()
        raise Retryable("away")

    def refuses() -> None:
        assert away.wait(WAIT_S)
        raise ValueError("refused")

    with pytest.raises(ValueError, match="refused"):
        loads.run({"a": is_away, "b": refuses})
