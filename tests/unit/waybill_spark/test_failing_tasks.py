"""How many jobs it takes to find the records that fail, where few or nearly all are bad."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from waybill_spark.driver.sql.failing_tasks import find_failing_records
from waybill_spark.tracking.dead_letters.records import QueryFailed

CORES = 2


@dataclass
class Jobs:
    """Runs the tasks of records in their order, so many at a time. The first that fails ends the
    job, but not those that run at that time."""

    records: int
    bad: set[int]
    copies: int = 1
    passing: set[int] = field(default_factory=set)
    """Those of `bad` that pass when they are alone."""
    together: int = 0
    alone: int = 0

    def try_together(self, tasks: Sequence[int]) -> tuple[set[int], set[int]]:
        self.together += 1
        passed: set[int] = set()
        for start in range(0, len(tasks), CORES):
            now = {*tasks[start : start + CORES]}
            failed = {task for task in now if task % self.records in self.bad}
            passed |= now - failed
            if failed:
                return passed, failed
        return passed, set()

    def try_alone(self, number: int) -> QueryFailed | None:
        self.alone += 1
        is_bad = number in self.bad - self.passing
        return QueryFailed(f"record {number}", "ArithmeticException") if is_bad else None

    def find(self) -> list[int]:
        tasks = range(self.records * self.copies)
        found = [*find_failing_records(tasks, self.records, self.try_together, self.try_alone)]
        assert all(str(why) == f"record {number}" for number, why, _ in found)
        left = [each for _, _, each in found]
        assert left == sorted(left, reverse=True), "it comes nearer to the end"
        return [number for number, _, _ in found]


def test_few_bad_records_cost_two_jobs_each() -> None:
    jobs = Jobs(records=400, bad=set(range(0, 400, 10)))
    assert jobs.find() == sorted(jobs.bad)
    assert (jobs.together, jobs.alone) == (41, 41)


def test_where_nearly_all_are_bad_most_are_found_and_proved_by_one_job() -> None:
    jobs = Jobs(records=440, bad={n for n in range(440) if n % 11})
    assert jobs.find() == sorted(jobs.bad)
    assert (jobs.together, jobs.alone) == (41, 439)


def test_records_that_are_all_bad_cost_one_job_each() -> None:
    jobs = Jobs(records=400, bad=set(range(400)))
    assert jobs.find() == sorted(jobs.bad)
    assert (jobs.together, jobs.alone) == (1, 400)


def test_while_all_pass_the_jobs_grow() -> None:
    jobs = Jobs(records=1_000, bad={999})
    assert jobs.find() == [999]
    assert (jobs.together, jobs.alone) == (6, 1)


@pytest.mark.parametrize("bad", [{0}, {7}, {63, 64}, {99}, set[int]()])
def test_a_record_with_several_tasks_is_found_once(bad: set[int]) -> None:
    jobs = Jobs(records=100, bad=bad, copies=3)
    assert jobs.find() == sorted(bad)
    assert jobs.alone <= len(bad) + 1


def test_a_record_that_passes_alone_is_not_found_and_not_tried_again() -> None:
    jobs = Jobs(records=10, bad={0, 4, 5}, passing={0, 4})
    assert jobs.find() == [5]
    assert jobs.alone == 3


def test_the_search_ends_where_nothing_is_known_of_the_tasks() -> None:
    def know_nothing(_: Sequence[int]) -> tuple[set[int], set[int]]:
        return set(), set()

    assert not [*find_failing_records(range(9), 9, know_nothing, Jobs(9, {3}).try_alone)]
