"""Bodies that are too large, too deep or too many: refused in time, whatever stands in them."""

from contextlib import suppress

import pytest

from unit.ingress.bodies import rows_of
from unit.ingress.json_bodies import array, ndjson, reasons, rule
from waybill_ingress.core.bodies.lines import read_ndjson
from waybill_ingress.core.bodies.values import read_values
from waybill_ingress.core.rows import Rejection, RowLimits
from waybill_shared.contract.errors import Refusal


def test_a_name_that_spark_refuses_is_refused() -> None:
    limits = RowLimits(records_max=1, record_bytes_max=100_000, bytes_max=10_000_000)
    row = b'{"' + b"n" * 50_001 + b'": 1}'
    assert "a name is longer" in reasons(ndjson(row, limits=limits))[0]


def test_too_many_records_are_refused_as_a_whole() -> None:
    limits = RowLimits(records_max=2, record_bytes_max=100, bytes_max=10_000_000)
    for body, read in ((b"{}\n{}\n{}", ndjson), (b"[{},{},{}]", array)):
        with pytest.raises(Refusal, match="more than 2 records") as refused:
            read(body, limits=limits)
        assert refused.value.slug == "too_many_records"


def test_a_key_counts_towards_the_size() -> None:
    row = b'{"name": "' + b"x" * 3_000 + b'"}'
    assert "with its key" in reasons(ndjson(row, key="name"))[0]


def test_nested_beyond_what_the_parser_takes() -> None:
    """A line has its own end; of an array nobody knows where the next value begins."""
    deep = b'{"x": ' + b"[" * 2_000 + b"]" * 2_000 + b"}"
    rows = ndjson(deep + b'\n{"id": 1}')
    assert (len(rows.records), reasons(rows)[0]) == (1, "nested deeper than 64")
    with pytest.raises(Refusal, match="nested deeper"):
        array(b"[" + deep + b"]")


@pytest.mark.parametrize("step", [1, 7, 64, 10_000])
def test_lines_around_the_limit_do_not_depend_on_how_they_come(step: int) -> None:
    limits = RowLimits(records_max=100, record_bytes_max=100, bytes_max=10_000)
    just = b'{"name": "' + b"x" * 88 + b'"}'
    body = just + b"\r\n" + b" " * 300 + b"\n" + just + b" \n" + b" " * 101 + b"\r\n{}"
    rows = rows_of(read_ndjson, body, rule(), limits, step=step)
    assert [record.row for record in rows.records] == [0, 2]
    assert reasons(rows) == {1: "101 bytes, 100 is the most"}


def test_of_a_line_without_end_only_the_size_is_kept() -> None:
    limits = RowLimits(records_max=10, record_bytes_max=100, bytes_max=10_000_000)
    body = b'{"id": 1}\n' + b"x" * 10_000 + b'\n{"id": 2}\n' + b"y" * 500
    rows = rows_of(read_ndjson, body, rule(), limits, step=64)
    assert [record.row for record in rows.records] == [0, 2]
    assert reasons(rows) == {1: "10000 bytes, 100 is the most", 3: "500 bytes, 100 is the most"}


def test_more_rows_that_do_not_fit_than_can_be_named_refuse_the_body() -> None:
    limits = RowLimits(records_max=100_000, record_bytes_max=100, bytes_max=10_000_000)
    with pytest.raises(Refusal, match="more than 10000 records do not fit") as refused:
        ndjson(b'{"id": 1}\n' + b"x\n" * 10_001, limits=limits)
    assert refused.value.slug == "records_rejected"


NAMES = [b'"%d": 1' % number for number in range(30_000)]


@pytest.mark.parametrize(
    ("body", "step"),
    [
        (b"[" * 1_500 + b'"' + b'\\"' * 400_000, 65_536),
        (b'[{"x": "' + b"y" * 3_900_000, 1_000),
        (b'[{"x": [' + b"{}," * 1_000_000, 1_000),
        (b"[" + b"{" + b",".join([*NAMES, NAMES[0]]) + b"}]", 65_536),
        (b"[{}," + b" " * 3_000_000 + b"]", 100),
    ],
)
def test_no_body_takes_long(body: bytes, step: int) -> None:
    """Each took minutes, or hours, where a step looks at all that it has seen before."""
    limits = RowLimits(records_max=100, record_bytes_max=1_000_000, bytes_max=10_000_000)
    rejected: list[Rejection] = []
    with suppress(Refusal):
        rejected = rows_of(read_values, body, rule(), limits, step=step).rejected
    assert bool(rejected) is (b"29999" in body)


def test_a_text_that_is_nearly_a_number_takes_no_time() -> None:
    """It took minutes, when each digit could be of two parts."""
    limits = RowLimits(records_max=1, record_bytes_max=1_000_000, bytes_max=1_000_000)
    row = b'{"amount": "' + b"1" * 300_000 + b'x"}'
    assert "DECIMAL(10,2) takes a number" in reasons(ndjson(row, limits=limits))[0]
