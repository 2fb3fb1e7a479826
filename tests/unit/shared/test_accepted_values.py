"""The table of accepted values against the checks that ingress makes."""

import json
from decimal import Decimal
from typing import NoReturn

import pytest

from accepted_values import AcceptedValue, accepted_values
from waybill_shared.contract.manifest.columns import parse_columns, refusal


def refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")


def taken(case: AcceptedValue) -> bool:
    if case.record is None:
        return False
    try:
        row = json.loads(case.record.decode(), parse_float=Decimal, parse_constant=refuse_constant)
    except ValueError:
        return False
    return refusal(parse_columns(f"c {case.type}"), row) is None


@pytest.mark.parametrize("case", accepted_values(), ids=str)
def test_value_is_taken_as_the_table_says(case: AcceptedValue) -> None:
    assert taken(case) is case.accepted


def test_what_is_accepted_has_a_value() -> None:
    assert all(case.gives is not None for case in accepted_values() if case.accepted)
