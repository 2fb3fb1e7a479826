"""Why a record is dead. If it is malformed, in the words of `ingress`, which would have refused it.

Spark has said that it is, and only that. What this finds may be another fault than the one that
Spark stumbled over, and never one that the record does not have.
"""

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from waybill_shared.contract.errors import UserError
from waybill_shared.contract.manifest.columns import (
    Column,
    parse_columns,
    refusal,
    unknown_field,
)
from waybill_shared.contract.words import DeadReason
from waybill_spark.dead_letters.records import MESSAGE_CHARACTERS_MAX, Death
from waybill_spark.driver.decode import DecodedInput
from waybill_spark.driver.judging import MalformedRecord, RuleBroken

ABSENT: Final = "it has no value"
OTHERWISE: Final = "Spark cannot read it as a record with these columns"
NOT_FINITE: Final = frozenset({"NaN", "Infinity", "-Infinity"})


def death_of(value: bytes | None, verdict: int, source: DecodedInput) -> Death:
    if verdict == 0:
        return Death(
            reason=DeadReason.MALFORMED,
            message=why_malformed(value, source),
            error=MalformedRecord.__name__,
        )
    rule = source.rules[verdict - 1]
    expected = " ".join(rule.expect.split())
    return Death(
        reason=DeadReason.VIOLATED,
        message=f"it breaks rule {rule.name}: {expected}"[:MESSAGE_CHARACTERS_MAX],
        rule=rule.name,
        error=RuleBroken.__name__,
    )


def why_malformed(value: bytes | None, source: DecodedInput) -> str:
    reason = ABSENT if value is None else _reason(value, source)
    return (reason or OTHERWISE)[:MESSAGE_CHARACTERS_MAX]


def _reason(value: bytes, source: DecodedInput) -> str | None:
    constants: list[str] = []
    decoder = json.JSONDecoder(parse_float=Decimal, parse_constant=constants.append)
    try:
        row = decoder.decode(value.decode())
    except UnicodeDecodeError as error:
        return f"byte {error.start + 1} is not UTF-8"
    except json.JSONDecodeError as error:
        return f"not JSON at character {error.pos + 1}: {error.msg}"
    except RecursionError:
        return "it is nested too deep"
    except (ArithmeticError, ValueError):  # an exponent, or digits, beyond what Python reads
        return None
    if constants:
        return f"{constants[0]} is not JSON"
    try:
        return _refusal(row, source)
    except UserError:  # what a stage writes may have types that no input has
        return None


def _refusal(row: object, source: DecodedInput) -> str | None:
    columns = parse_columns(source.columns)
    if source.own_output:
        columns = tuple(each for each in columns if not _not_finite(row, each))
    reason = refusal(columns, row)
    if reason is None and source.strict and isinstance(row, Mapping):
        return unknown_field(columns, row)
    return reason


def _not_finite(row: object, column: Column) -> bool:
    """What our own sink writes where a number is none."""
    return isinstance(row, Mapping) and row.get(column.name) in NOT_FINITE
