"""Errors that a value of a record causes in a query."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TypeGuard

from pyspark.errors import PySparkException
from pyspark.errors.exceptions.captured import SQLQueryContext

from waybill_shared.contract.manifest.model import Step
from waybill_spark.guard.plans import in_a_sentence
from waybill_spark.tracking.dead_letters.records import MESSAGE_CHARACTERS_MAX, QueryFailed

VALUE: Final = re.compile("22(?!000)")
"""The class of SQL states that are about a value; 22000 is what sources report of their records."""


@contextmanager
def name_value_errors(steps: Sequence[Step] = ()) -> Iterator[None]:
    """Raise QueryFailed where a value ends a query; it names the one of `steps` that it ends."""
    try:
        yield
    except PySparkException as error:
        if is_value_error(error):
            raise query_failed(error, steps) from error
        raise


def is_value_error(error: BaseException) -> TypeGuard[PySparkException]:
    return isinstance(error, PySparkException) and bool(VALUE.match(error.getSqlState() or ""))


def query_failed(error: PySparkException, steps: Sequence[Step] = ()) -> QueryFailed:
    step = _step_of(error, steps)
    query = "the query" if step is None else f"step {step}"
    said = f"{query} ends at a value: {in_a_sentence(error)}"
    return QueryFailed(said[:MESSAGE_CHARACTERS_MAX], type(error).__name__)


def _step_of(error: PySparkException, steps: Sequence[Step]) -> str | None:
    """Return the step in which Spark met the value; None if Spark does not say, or it may be
    several. By the whole text: two steps may have one fragment, and its offsets in a text with an
    emoji are wrong."""
    contexts = [each for each in error.getQueryContext() if isinstance(each, SQLQueryContext)]
    texts = [each._q.sqlText() for each in contexts]
    met = {text.get() for text in texts if text.isDefined()}
    found = [step.name for step in steps if step.sql in met]
    return found[0] if len(found) == 1 else None
