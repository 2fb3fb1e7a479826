"""A batch with more bad records than the budget is taken in parts, one with each start."""

from pathlib import Path
from typing import cast

import pytest

from unit.waybill_spark.bench import NO_FRAME
from unit.waybill_spark.graveyard import Graveyard, PickySink
from waybill_shared.contract.events import Range
from waybill_spark.tracking.dead_letters.budget import Budget, BudgetExceeded
from waybill_spark.tracking.pieces import before

BAD = {1, 3, 5, 7}
GOOD = [0, 2, 4, 6, 8]
END = 9
AT = ("T1", 0)


@pytest.fixture(params=[0, 2, 100], ids=["read", "few planned", "planned"])
def graveyard(tmp_path: Path, request: pytest.FixtureRequest) -> Graveyard:
    return Graveyard(tmp_path, plans_up_to=request.param)


def start(graveyard: Graveyard, *, budget: int = 2) -> None:
    """As a new driver does: where the sinks are, with a fresh budget."""
    graveyard.budget = Budget(budget, 60_000)
    begins = graveyard.started()
    if begins[AT] < END:
        graveyard.plan(0, END, start=begins[AT])
        graveyard.stage().process(NO_FRAME, 0)


@pytest.mark.parametrize("why", ["malformed", "failing"])
def test_each_start_puts_as_many_records_aside_as_the_budget_has(
    graveyard: Graveyard, why: str
) -> None:
    setattr(graveyard, why, set(BAD))
    with pytest.raises(BudgetExceeded, match="dead_letter_budget"):
        start(graveyard)
    assert [offset for offset, _, _ in graveyard.buried()] == [1, 3]
    assert graveyard.first.numbers == graveyard.second.numbers == GOOD[:3]
    start(graveyard)
    assert [offset for offset, _, _ in graveyard.buried()] == [1, 3, 5, 7]
    assert graveyard.first.numbers == graveyard.second.numbers == GOOD


def test_a_record_is_put_aside_once_though_the_batch_is_read_in_parts(
    graveyard: Graveyard,
) -> None:
    """Also where records fail and others do not fit, so that the first part is cut again."""
    graveyard.failing, graveyard.malformed = {1, 5}, {2, 3, 6}
    for _ in range(5):
        try:
            start(graveyard)
        except BudgetExceeded:
            continue
        break
    assert sorted(offset for offset, _, _ in graveyard.buried()) == [1, 2, 3, 5, 6]
    assert graveyard.first.numbers == graveyard.second.numbers == [0, 4, 7, 8]


def test_a_sink_that_refuses_too_much_gets_its_part_and_the_other_all(
    graveyard: Graveyard,
) -> None:
    cast(PickySink, graveyard.second).refusing = set(BAD)
    with pytest.raises(BudgetExceeded):
        start(graveyard)
    assert graveyard.first.numbers == list(range(END))
    assert graveyard.second.numbers == GOOD[:3]
    start(graveyard)
    assert graveyard.first.numbers == list(range(END)), "it had all of it"
    assert graveyard.second.numbers == GOOD
    assert [offset for offset, _, _ in graveyard.buried()] == sorted(BAD)


def test_a_budget_that_is_spent_leaves_no_part(graveyard: Graveyard) -> None:
    graveyard.malformed = {0, 3, 4}
    graveyard.budget = Budget(1, 60_000)
    graveyard.run(0, end=3)
    with pytest.raises(BudgetExceeded):
        graveyard.run(1, end=5)
    assert graveyard.first.numbers == [1, 2]
    assert [offset for offset, _, _ in graveyard.buried()] == [0]


def test_a_batch_that_must_stay_whole_is_not_cut(graveyard: Graveyard) -> None:
    graveyard.malformed, graveyard.replaces = set(BAD), True
    with pytest.raises(BudgetExceeded) as raised:
        start(graveyard)
    assert "deadLetter.budget" in raised.value.hint
    assert graveyard.journal.fences == graveyard.first.fences == []


def test_what_is_before_a_record_is_cut_where_it_lies() -> None:
    ranges = tuple(run(partition, 10, 20) for partition in range(3))
    assert before(ranges, ("t", 1, 15)) == (ranges[0], run(1, 10, 15))
    assert before(ranges, ("t", 1, 10)) == ranges[:1]
    assert before(ranges, ("t", 0, 10)) == ()


def run(partition: int, begin: int, end: int) -> Range:
    return Range(topic="t", topic_id="T", partition=partition, start=begin, end=end)
