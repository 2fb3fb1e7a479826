"""Why a record is dead. If it is malformed, in the words of `ingress`, which would have refused it.

Spark has said that it is, and only that. What this finds may be another fault than the one that
Spark stumbled over, and never one that the record does not have.
"""

from typing import Final

from waybill_shared.contract.words import DeadReason
from waybill_spark.driver.reading.decode import reader_of
from waybill_spark.driver.reading.decode_report import MalformedRecord, RuleBroken
from waybill_spark.driver.reading.inputs import DecodedInput
from waybill_spark.tracking.dead_letters.records import MESSAGE_CHARACTERS_MAX, DeadCause

ABSENT: Final = "it has no value"
OTHERWISE: Final = "Spark cannot read it as a record with these columns"


def find_dead_cause(value: bytes | None, verdict: int, source: DecodedInput) -> DeadCause:
    if verdict == 0:
        return DeadCause(
            reason=DeadReason.MALFORMED,
            message=why_malformed(value, source),
            error=MalformedRecord.__name__,
        )
    rule = source.rules[verdict - 1]
    expected = " ".join(rule.expect.split())
    return DeadCause(
        reason=DeadReason.VIOLATED,
        message=f"it breaks rule {rule.name}: {expected}"[:MESSAGE_CHARACTERS_MAX],
        rule=rule.name,
        error=RuleBroken.__name__,
    )


def why_malformed(value: bytes | None, source: DecodedInput) -> str:
    reason = ABSENT if value is None else reader_of(source).why(value, source)
    return (reason or OTHERWISE)[:MESSAGE_CHARACTERS_MAX]
