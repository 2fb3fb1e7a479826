"""The records of a request: all of them come back, in their order, and few are in memory."""

import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from waybill_ingress.adapters.http.bodies import PIECE_BYTES, PIECE_RECORDS, RecordSpool
from waybill_ingress.core.delivered_ranges import DeliveredRanges
from waybill_ingress.core.rows import Record
from waybill_shared.contract.vectors import Span

MEMORY_BYTES_MAX = 12_000_000


def test_what_goes_in_comes_out_in_pieces() -> None:
    records = [Record(n, b"k" if n % 2 else None, b"v%d" % n) for n in range(3 * PIECE_RECORDS + 5)]
    with RecordSpool() as spool:
        for record in records:
            spool.add(record)
        for _ in range(2):
            pieces = [*spool.pieces()]
            assert [record for piece in pieces for record in piece] == records
            assert max(map(len, pieces)) == PIECE_RECORDS
        assert spool.count == len(records)


def test_large_records_are_not_held() -> None:
    tracemalloc.start()
    try:
        with RecordSpool() as spool:
            for number in range(100):
                spool.add(Record(number, None, bytes(1_000_000)))
            sizes = [sum(len(record.value) for record in piece) for piece in spool.pieces()]
        assert tracemalloc.get_traced_memory()[1] < MEMORY_BYTES_MAX
    finally:
        tracemalloc.stop()
    assert max(sizes) <= PIECE_BYTES
    assert sum(sizes) == 100_000_000


@given(st.lists(st.lists(st.tuples(st.integers(0, 2), st.integers(-1, 40)), max_size=10)))
def test_spans_are_those_of_all_records(pieces: list[list[tuple[int, int]]]) -> None:
    told = DeliveredRanges()
    for piece in pieces:
        told.add(piece)
    all_of_them = [place for piece in pieces for place in piece]
    unplaced = frozenset(partition for partition, offset in all_of_them if offset < 0)
    assert (told.count, told.unplaced) == (len(all_of_them), unplaced)
    spans = told.spans("T", {}, dict.fromkeys(unplaced, 99))
    covered = {(s.partition, at) for s in spans for at in range(s.start, s.end)}
    expected = {place for place in all_of_them if place[0] not in unplaced}
    assert covered == expected | {(p, at) for p in unplaced for at in range(99)}


def test_a_million_records_in_a_row_are_one_span() -> None:
    told = DeliveredRanges()
    for begin in range(0, 1_000_000, 1_000):
        told.add((0, offset) for offset in reversed(range(begin, begin + 1_000)))
    assert told.spans("T", {}, {}) == (Span(topic_id="T", partition=0, start=0, end=1_000_000),)
