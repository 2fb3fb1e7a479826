"""What a driver's failure is called in the phase and in the answer to a command."""

import re
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.errors.exceptions.base import QueryContext
from pyspark.errors.exceptions.captured import SQLQueryContext

from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.contract.manifest.model import Step
from waybill_spark.driver.failures import describe
from waybill_spark.driver.reading.decode_report import MalformedRecord, RuleBroken
from waybill_spark.driver.reading.inputs import DecodedInput
from waybill_spark.driver.sql.value_errors import name_value_errors
from waybill_spark.tracking.dead_letters.records import MESSAGE_CHARACTERS_MAX, QueryFailed

ROOT = Path(__file__).parents[3]
ORDERS = DecodedInput(name="orders", topic="orders.in", columns="id INT", own_output=False)


def test_problem_of_a_manifest_is_told_with_its_place() -> None:
    placed = Problem(message="no function is called `foo`", line=7, column=3, hint="see docs")
    error = describe(UserError([placed, Problem(message="and more")]), "load")
    assert error.message == "no function is called `foo` (line 7, column 3); and more"
    assert (error.domain, error.hint, error.stage) == ("user", "see docs", "load")


class OfAText:
    """A place in a query, as the JVM has it; also its text, which there need not be."""

    def __init__(self, text: str | None) -> None:
        self._text = text

    def sqlText(self) -> "OfAText":  # noqa: N802 - Spark's name
        return self

    def isDefined(self) -> bool:  # noqa: N802
        return self._text is not None

    def get(self) -> str | None:
        return self._text


class OfAQuery(PySparkException):
    def __init__(self, state: str, said: str = "long overflow.", *texts: str | None) -> None:
        super().__init__(f"[ARITHMETIC_OVERFLOW] {said} SQLSTATE: 22003\n\nat line 3")
        self._state = state
        self._texts = texts

    def getSqlState(self) -> str:  # noqa: N802 - Spark's name
        return self._state

    def getQueryContext(self) -> list[QueryContext]:  # noqa: N802
        return [SQLQueryContext(OfAText(text)) for text in self._texts]


def test_value_that_a_query_cannot_take_is_for_its_author_to_mend() -> None:
    error = describe(OfAQuery("22003"), "load")
    assert (error.domain, error.retryable) == ("user", False)
    assert error.message == "the query ends at a value: long overflow."
    assert "try_" in error.hint


@pytest.mark.parametrize(
    "failure",
    [
        OfAQuery("22003"),
        QueryFailed("the query ends at a value: long overflow.", "ArithmeticException"),
        MalformedRecord(ORDERS, 1, 0, 41, "nonsense"),
        RuleBroken(ORDERS, "positive", 1, "orders.in[0]@41"),
    ],
)
def test_who_cannot_mend_what_is_in_the_topic_is_shown_the_way_out(failure: Exception) -> None:
    named = re.search(r'see "(.*)" in (docs/.*)', describe(failure, "load").hint)
    assert named is not None
    assert f"\n## {named[1]}\n" in (ROOT / named[2]).read_text(encoding="utf-8")


def test_what_a_source_says_of_its_records_is_tried_again() -> None:
    assert describe(OfAQuery("22000"), "load").retryable


def test_a_value_that_ends_a_query_is_told_in_the_same_words_wherever_it_is_met() -> None:
    with pytest.raises(QueryFailed) as raised, name_value_errors():
        raise OfAQuery("22003")
    assert raised.value.error == "OfAQuery"
    assert describe(raised.value, "load") == describe(OfAQuery("22003"), "load")


NET = Step(name="net", sql="SELECT 100 / amount AS part FROM orders")
HALF = Step(name="half", sql="SELECT 100 / amount AS part FROM net")  # the same, elsewhere
TWIN = Step(name="twin", sql=NET.sql)


@pytest.mark.parametrize(
    ("steps", "met", "named"),
    [
        ([NET, HALF], [NET.sql], "step net"),
        ([NET, HALF], [HALF.sql], "step half"),
        ([NET, HALF], [HALF.sql, HALF.sql], "step half"),
        ([NET, HALF, TWIN], [HALF.sql], "step half"),
        ([NET, HALF, TWIN], [NET.sql], "the query"),
        ([NET, HALF], [NET.sql, HALF.sql], "the query"),
        ([NET, HALF], ["amount > 0"], "the query"),
        ([NET], ["100 / amount"], "the query"),
        ([NET], [None], "the query"),
        ([NET], [], "the query"),
        ([], [NET.sql], "the query"),
    ],
)
def test_a_step_is_named_only_where_it_is_the_only_one(
    steps: list[Step], met: list[str | None], named: str
) -> None:
    with pytest.raises(QueryFailed) as raised, name_value_errors(steps):
        raise OfAQuery("22003", "long overflow.", *met)
    assert str(raised.value) == f"{named} ends at a value: long overflow."


def test_no_setting_is_named_that_a_manifest_cannot_change() -> None:
    said = (
        "Division by zero. Use `try_divide` to return NULL instead. If necessary set"
        ' "spark.sql.ansi.enabled" to "false" to bypass this error.'
    )
    with pytest.raises(QueryFailed) as raised, name_value_errors():
        raise OfAQuery("22012", said)
    assert str(raised.value).endswith("Use `try_divide` to return NULL instead.")


def test_what_is_said_of_a_value_is_short() -> None:
    with pytest.raises(QueryFailed) as raised, name_value_errors():
        raise OfAQuery("22018", "x" * 5_000)
    assert len(str(raised.value)) == MESSAGE_CHARACTERS_MAX


def test_what_is_no_value_is_not_a_fault_of_a_record() -> None:
    with pytest.raises(OfAQuery), name_value_errors():
        raise OfAQuery("22000")


def test_a_broken_rule_that_ends_a_stage_is_named_with_the_first_record() -> None:
    error = describe(RuleBroken(ORDERS, "positive", 3, "orders.in[0]@41"), "load")
    said = "input orders: 3 record(s) break rule positive; the first is orders.in[0]@41"
    assert (error.domain, error.retryable, error.message) == ("user", False, said)
