"""Columns of an input: how they are written, and why a record is refused.

Which values are taken stands in `accepted_values.yaml`.
"""

from decimal import Decimal

import pytest

from waybill_shared.contract.errors import UserError
from waybill_shared.contract.manifest.columns import parse_columns, refusal

ORDERS = parse_columns("order_id BIGINT, amount DECIMAL(10,2), lines ARRAY<STRUCT<n: INT>>")


def test_columns_keep_their_order_and_type() -> None:
    columns = parse_columns("a int, `b c` decimal(10, 2) , d map<string, array<date>>")
    assert [(column.name, column.type) for column in columns] == [
        ("a", "INT"),
        ("b c", "DECIMAL(10, 2)"),
        ("d", "MAP<STRING, ARRAY<DATE>>"),
    ]


@pytest.mark.parametrize(
    ("ddl", "message"),
    [
        ("", "expected a column name, found '', at character 1"),
        ("a", "expected a type, found '', at character 2"),
        ("a INT,", "expected a column name, found '', at character 7"),
        ("a INT b INT", "expected a comma, found 'b INT', at character 7"),
        ("a FOO", "unknown type FOO, at character 3"),
        ("a INT, A INT", "column 'A' stands twice, at character 8"),
        ("a DECIMAL(39,2)", "DECIMAL(39,2) is not 1 ≤ precision ≤ 38, scale ≤ precision, at"),
        ("a DECIMAL(2,3)", "DECIMAL(2,3) is not 1 ≤ precision ≤ 38, scale ≤ precision, at"),
        ("a DECIMAL(0)", "DECIMAL(0,0) is not 1 ≤ precision ≤ 38, scale ≤ precision, at"),
        ("a DECIMAL(x)", "expected a number, found 'x', at"),
        ("a ARRAY", "expected '<', found '', at character 8"),
        ("a ARRAY<INT", "expected '>', found '', at character 12"),
        ("a MAP<INT,INT>", "the keys of a MAP read from JSON are STRING, at character 7"),
        ("a STRUCT<b INT>", "expected ':', found 'INT>', at character 12"),
        ("a STRUCT<b: FOO>", "unknown type FOO, at character 13"),
        ("a INT NOT NULL", "expected a comma, found 'NOT NULL', at character 7"),
        ("a-b INT", "expected a type, found '-b INT', at character 2"),
        ("a " + "ARRAY<" * 20 + "INT" + ">" * 20, "types nest deeper than 16, at"),
    ],
)
def test_mistake_is_named_with_its_place(ddl: str, message: str) -> None:
    with pytest.raises(UserError) as raised:
        parse_columns(ddl)
    assert f"schema: {message}" in str(raised.value)


def test_unknown_type_comes_with_the_known_ones() -> None:
    with pytest.raises(UserError) as raised:
        parse_columns("a VARCHAR")
    assert "DECIMAL(p,s), STRING" in raised.value.problems[0].hint


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ([], "a record is a JSON object, this is an array"),
        (None, "a record is a JSON object, this is null"),
        ("x", "a record is a JSON object, this is the string 'x'"),
        ({"order_id": "7"}, "order_id: BIGINT takes a whole number, this is the string '7'"),
        ({"order_id": True}, "order_id: BIGINT takes a whole number, this is a boolean"),
        ({"order_id": 2**63}, f"order_id: BIGINT takes -{2**63} to {2**63 - 1}, this is {2**63}"),
        ({"amount": Decimal("1e9")}, "amount: 1E+9 does not fit DECIMAL(10,2)"),
        ({"lines": {}}, "lines: ARRAY takes an array, this is an object"),
        ({"lines": [{"n": 1}, {"n": "x"}]}, "lines: n: INT takes a whole number, this is the"),
    ],
)
def test_refusal_names_column_and_value(row: object, reason: str) -> None:
    found = refusal(ORDERS, row)
    assert found is not None
    assert found.startswith(reason)


@pytest.mark.parametrize("exponent", ["9999999", "-9999999"])
def test_exponent_beyond_all_bounds_is_refused_at_once(exponent: str) -> None:
    assert refusal(ORDERS, {"amount": Decimal(f"1e{exponent}")}) is not None


def test_long_values_are_cut_in_the_reason() -> None:
    found = refusal(ORDERS, {"order_id": "x" * 5_000})
    assert found is not None
    assert len(found) < 120
