"""Rows as people read them in a log."""

from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa

from waybill_spark.sinks.console.table import WIDTH_MAX, draw


def test_columns_stand_below_their_names() -> None:
    rows = {
        "order_id": [1, 20],
        "customer": ["Ada", None],
        "amount": [Decimal("7.50"), Decimal("10.00")],
    }
    assert draw(pa.table(rows), 5).splitlines() == [
        "order_id | customer | amount",
        "---------+----------+-------",
        "1        | Ada      | 7.50",
        "20       | NULL     | 10.00",
    ]


def test_rows_beyond_the_first_are_counted() -> None:
    *_, last, more = draw(pa.table({"n": list(range(30))}), 20).splitlines()
    assert (last, more) == ("19", "and 10 more")


def test_a_value_stays_on_its_line_and_is_no_longer_than_a_column() -> None:
    text = "first\nsecond\x1b[2J" + "x" * 100
    *_, line = draw(pa.table({"text": [text]}), 20).splitlines()
    assert line.startswith(r"first\nsecond\x1b[2J")
    assert len(line) == WIDTH_MAX
    assert line.endswith("…")


def test_every_type_of_column_is_drawn() -> None:
    at = datetime(2026, 11, 24, 9, tzinfo=UTC)
    rows = {"at": [at], "raw": [b"\xff"], "tags": [["a", "b"]], "place": [{"x": 1}]}
    *_, line = draw(pa.table(rows), 20).splitlines()
    assert line.split(" | ") == [str(at), r"b'\xff'", "['a', 'b']", "{'x': 1}"]
