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
        ("b c", "DECIMAL(10,2)"),
        ("d", "MAP<STRING,ARRAY<DATE>>"),
    ]


@pytest.mark.parametrize(
    ("ddl", "place", "message"),
    [
        ("", (1, 1), "expected a column name, found the end of the text"),
        ("a", (1, 2), "expected a type, found the end of the text"),
        ("a INT, \n", (1, 7), "expected a column name, found the end of the text"),
        ("a INT b INT", (1, 7), "expected a comma, found 'b INT'"),
        ("a FOO", (1, 3), "unknown type FOO"),
        ("a INT,\n  b FOO", (2, 5), "unknown type FOO"),
        ("a INT, A INT", (1, 8), "column 'A' stands twice"),
        ("a DECIMAL(39,2)", (1, 10), "DECIMAL(39,2) cannot be"),
        ("a DECIMAL(2,3)", (1, 10), "DECIMAL(2,3) cannot be"),
        ("a DECIMAL(0)", (1, 10), "DECIMAL(0,0) cannot be"),
        ("a DECIMAL(x)", (1, 12), "expected a number, found 'x'"),
        ("a ARRAY", (1, 8), "expected '<', found the end of the text"),
        ("a ARRAY<INT", (1, 12), "expected '>', found the end of the text"),
        ("a MAP<INT,INT>", (1, 7), "the keys of a MAP read from JSON are STRING"),
        ("a STRUCT<b INT>", (1, 12), "expected ':', found 'INT>'"),
        ("a STRUCT<b: FOO>", (1, 13), "unknown type FOO"),
        ("a INT NOT", (1, 10), "expected NULL, found the end of the text"),
        ("a INT NOT b", (1, 7), "NULL must follow NOT"),
        ("a ARRAY<INT NOT NULL>", (1, 13), "expected '>', found 'NOT NULL>'"),
        (
            "a STRUCT<b: INT NOT NULL>",
            (1, 17),
            "NOT NULL stands behind a column, not inside a type",
        ),
        ("a-b INT", (1, 2), "expected a type, found '-b INT'"),
        ("a " + "ARRAY<" * 20 + "INT" + ">" * 20, (1, 105), "types nest deeper than 16"),
    ],
)
def test_mistake_is_named_with_its_place(ddl: str, place: tuple[int, int], message: str) -> None:
    with pytest.raises(UserError) as raised:
        parse_columns(ddl)
    (problem,) = raised.value.problems
    assert (problem.message, (problem.line, problem.column)) == (message, place)


def test_a_column_may_be_required() -> None:
    columns = parse_columns("a INT not null, b STRUCT<x: INT> NOT NULL, `not` INT")
    assert [(column.name, column.type, column.required) for column in columns] == [
        ("a", "INT", True),
        ("b", "STRUCT<x: INT>", True),
        ("not", "INT", False),
    ]
    assert refusal(columns, {"b": {}}) == "a: is missing, and the column is NOT NULL"
    assert refusal(columns, {"a": 1, "b": None}) == "b: is null, and the column is NOT NULL"


@pytest.mark.parametrize(
    ("type", "ours"),
    [("VARCHAR(20)", "STRING"), ("numeric(10,2)", "DECIMAL"), ("Bool", "BOOLEAN"), ("INTT", "INT")],
)
def test_type_that_others_know_is_told_by_our_name(type: str, ours: str) -> None:
    with pytest.raises(UserError) as raised:
        parse_columns(f"a {type}")
    assert raised.value.problems[0].hint.startswith(f"did you mean {ours}?")


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
