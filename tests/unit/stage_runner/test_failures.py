"""What a driver's failure is called in the phase and in the answer to a command."""

import re
from pathlib import Path

import pytest
from pyspark.errors import PySparkException

from waybill_shared.contract.errors import UserError
from waybill_shared.contract.events import Problem
from waybill_spark.driver.decode import DecodedInput, MalformedRecord
from waybill_spark.driver.failures import describe

ROOT = Path(__file__).parents[3]


def test_problem_of_a_manifest_is_told_with_its_place() -> None:
    placed = Problem(message="no function is called `foo`", line=7, column=3, hint="see docs")
    error = describe(UserError([placed, Problem(message="and more")]), "load")
    assert error.message == "no function is called `foo` (line 7, column 3); and more"
    assert (error.domain, error.hint, error.stage) == ("user", "see docs", "load")


class OfAQuery(PySparkException):
    def __init__(self, state: str) -> None:
        super().__init__("[ARITHMETIC_OVERFLOW] long overflow. SQLSTATE: 22003\n\nat line 3")
        self._state = state

    def getSqlState(self) -> str:  # noqa: N802 - Spark's name
        return self._state


def test_value_that_a_query_cannot_take_is_for_its_author_to_mend() -> None:
    error = describe(OfAQuery("22003"), "load")
    assert (error.domain, error.retryable) == ("user", False)
    assert error.message == "the query ends at a value: long overflow."
    assert "try_" in error.hint


@pytest.mark.parametrize(
    "failure",
    [
        OfAQuery("22003"),
        MalformedRecord(
            DecodedInput(name="orders", topic="orders.in", columns="id INT", own_output=False),
            *(1, 0, 41, "nonsense"),
        ),
    ],
)
def test_who_cannot_mend_what_is_in_the_topic_is_shown_the_way_out(failure: Exception) -> None:
    named = re.search(r'see "(.*)" in (docs/.*)', describe(failure, "load").hint)
    assert named is not None
    assert f"\n## {named[1]}\n" in (ROOT / named[2]).read_text(encoding="utf-8")


def test_what_a_source_says_of_its_records_is_tried_again() -> None:
    assert describe(OfAQuery("22000"), "load").retryable
