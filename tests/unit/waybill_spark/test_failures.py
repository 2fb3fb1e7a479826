"""What the log says of a failure: which ones nobody needs a traceback of."""

import pytest

from waybill_shared.contract.errors import Problem, Retryable, UserError
from waybill_shared.contract.words import StopReason
from waybill_spark.driver.failures import StageFailed, cause_of, for_the_log
from waybill_spark.tracking.stopping import StageClosed, StageStopped

STOPPED = StageStopped(StopReason.TABLE_MISSING, "no table", "make it", retryable=True)


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (STOPPED, True),
        (UserError([Problem(message="no column")]), True),
        (Retryable("Kafka is away"), True),
        (StageClosed("after the end"), True),
        (KeyError("a fault of ours"), False),
    ],
)
def test_what_is_raised_on_purpose_is_expected(failure: Exception, expected: bool) -> None:
    ended = StageFailed("load")
    ended.__cause__ = failure
    assert for_the_log(cause_of(failure))["expected"] is expected
    assert for_the_log(cause_of(ended))["expected"] is expected


def test_the_log_says_why_the_stage_ended() -> None:
    ended = StageFailed("load")
    ended.__cause__ = STOPPED
    assert for_the_log(cause_of(ended))["reason"] == "table_missing: no table"
