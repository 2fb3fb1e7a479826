"""How far a connector is: its rows in chunks, its spans, and pauses after failures."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from message_builders import make_progress
from strategies import patiently
from waybill_ingress.core.connectors.progress import RUNS_MAX, advance, join_spans, pause_s, runs_of
from waybill_ingress.core.connectors.rows import FileChunk, FileRows, read_rows
from waybill_ingress.core.rows import RowRule
from waybill_shared.contract.manifest.columns import parse_columns
from waybill_shared.contract.manifest.connectors import FileConnector
from waybill_shared.contract.vectors import Span

RULE = RowRule(columns=parse_columns("id BIGINT NOT NULL, name STRING"), key="id")
PLACES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 300)), min_size=1, max_size=20)


def span(partition: int, start: int, end: int) -> Span:
    return Span(topic_id="t", partition=partition, start=start, end=end)


def chunks_of(
    pieces: list[bytes], *, skip: int = 0, record_bytes_max: int = 1_000, **declared: object
) -> list[FileChunk]:
    connector = FileConnector.model_validate({"name": "c", "url": "https://x/y", **declared})
    found: list[FileChunk] = []
    rows = FileRows(RULE, record_bytes_max, skip=skip, give=found.append)
    read_rows(connector, pieces, rows)
    return found


def lines(count: int) -> bytes:
    return b"".join(json.dumps({"id": n}).encode() + b"\n" for n in range(count))


@given(st.lists(PLACES, min_size=1, max_size=150))
@patiently
def test_spans_have_all_that_was_written_and_there_are_few(
    written: list[list[tuple[int, int]]],
) -> None:
    spans: tuple[Span, ...] = ()
    for places in written:
        spans = join_spans(spans, runs_of(places, "t"))
    for partition, offset in (place for places in written for place in places):
        assert any(s.partition == partition and s.start <= offset < s.end for s in spans)
    assert len(spans) <= RUNS_MAX + 4


def test_a_run_behind_the_end_of_a_transaction_goes_on_with_it() -> None:
    assert join_spans([span(0, 5, 10)], [span(0, 11, 20)]) == (span(0, 5, 20),)
    assert join_spans([span(0, 5, 10)], [span(0, 12, 20)]) == (span(0, 5, 10), span(0, 12, 20))
    assert join_spans([span(0, 5, 10)], [span(1, 11, 20)]) == (span(0, 5, 10), span(1, 11, 20))


def test_old_runs_are_one_from_the_first_to_the_last() -> None:
    spans: tuple[Span, ...] = ()
    for number in range(RUNS_MAX + 10):
        spans = join_spans(spans, [span(0, 10 * number, 10 * number + 1)])
    assert spans[0] == span(0, 0, 91)
    assert spans[1:] == tuple(span(0, 10 * n, 10 * n + 1) for n in range(10, RUNS_MAX + 10))


def test_rows_come_in_chunks_which_end_between_rows() -> None:
    found = chunks_of([lines(2_500)])
    assert [(chunk.rows, len(chunk.records)) for chunk in found] == [
        (1_000, 1_000),
        (2_000, 1_000),
        (2_500, 500),
    ]


@given(st.integers(0, 30), st.integers(1, 40))
@patiently
def test_of_rows_that_were_taken_nothing_is_taken_again(skip: int, size: int) -> None:
    content = lines(10) + b"no\n" + lines(10) + b'{"id": null}\n'
    pieces = [content[at : at + size] for at in range(0, len(content), size)]
    (whole,) = chunks_of([content])
    found = chunks_of(pieces, skip=skip)
    records = [record for chunk in found for record in chunk.records]
    dead = [row for chunk in found for row in chunk.dead]
    assert records == [record for record in whole.records if record.row >= skip]
    assert dead == [row for row in whole.dead if row.row >= skip]


def test_rows_that_are_no_records_have_their_line_and_their_text() -> None:
    content = b'{"id": 1}\n\n{"name": "a"}\noh\n{"id": 2}\n[1]'
    (chunk,) = chunks_of([content])
    assert [(row.row, row.raw, row.reason[:8]) for row in chunk.dead] == [
        (1, b'{"name": "a"}', "line 3: "),
        (2, b"oh", "not JSON"),
        (4, b"[1]", "line 6: "),
    ]


def test_rows_of_csv_have_theirs() -> None:
    content = b'id,name\n1,a\nx,"b ""c"""\n3\n'
    (chunk,) = chunks_of([content], format="csv")
    assert [(row.raw, row.reason[:7]) for row in chunk.dead] == [
        (b'x,"b ""c"""', "line 3,"),
        (b"3", "line 4:"),
    ]
    assert [record.value for record in chunk.records] == [b'{"id":1,"name":"a"}']


def test_progress_counts_what_was_read_and_written() -> None:
    (chunk,) = chunks_of([lines(3) + b"no\n"])
    before = make_progress()
    after = advance(before, chunk, [(0, 1_000), (0, 1_001), (0, 1_002)], "AAAA")
    assert (after.rows, after.records, after.dead) == (4, before.records + 3, before.dead + 1)
    assert after.spans == (
        *before.spans,
        Span(topic_id="AAAA", partition=0, start=1_000, end=1_003),
    )


@pytest.mark.parametrize(("failures", "seconds"), [(1, 1), (2, 2), (5, 16), (11, 600), (99, 600)])
def test_pauses_grow_up_to_ten_minutes(failures: int, seconds: float) -> None:
    assert pause_s(failures) == seconds


def test_a_connector_is_known_by_topic_name_and_url_and_without_a_name_by_its_url() -> None:
    one = make_progress()
    assert replace(one, url="https://files.example/other.json").key != one.key
    assert replace(one, connector="other").key != one.key
    assert replace(one, topic="other").key != one.key
    moved = [replace(one, connector=f"unnamed-{number}").key for number in (0, 7)]
    assert moved[0] == moved[1] != one.key
