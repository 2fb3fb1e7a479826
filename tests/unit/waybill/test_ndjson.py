"""Records as lines, and lines as requests of a bounded size."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waybill import Unusable
from waybill.ndjson import Record, chunks, encode


def test_dicts_and_lines_become_one_line_each() -> None:
    records: list[Record] = [{"name": "Zoë\nA"}, b'{"id": 1}', b'{"id": 2}\r\n']
    assert encode(records).decode() == '{"name": "Zoë\\nA"}\n{"id": 1}\n{"id": 2}\n'


@dataclass
class Row:
    id: int


@pytest.mark.parametrize("single", [{"id": 1}, b'{"id": 1}', Row(1)])
def test_a_single_record_is_refused_with_the_way_out(single: object) -> None:
    with pytest.raises(TypeError, match="into a list"):
        encode(single)  # type: ignore[arg-type]


@pytest.mark.parametrize("blank", [b"", b" \r\n"])
def test_a_blank_line_is_refused_as_it_would_shift_the_indexes(blank: bytes) -> None:
    with pytest.raises(Unusable, match="record 1 is blank"):
        encode([b"{}", blank])


def test_a_line_break_within_a_line_is_refused() -> None:
    with pytest.raises(Unusable, match="record 0 has a line break"):
        encode([b'{"a":\n1}'])


def test_chunks_are_bounded_by_count_and_know_their_lines() -> None:
    lines = [b"a\n", b"\n", b"b\n", b"c"]
    first, second = chunks(lines, records_max=2)
    assert (first.lines, first.line_numbers) == ((b"a", b"b"), (1, 3))
    assert (second.lines, second.line_numbers) == ((b"c",), (4,))


def test_chunks_are_bounded_by_size_and_a_long_line_goes_alone() -> None:
    lines = [b"aa", b"bb", b"c" * 9, b"dd", b"ee"]
    found = [chunk.lines for chunk in chunks(lines, bytes_max=6)]
    assert found == [(b"aa", b"bb"), (b"c" * 9,), (b"dd", b"ee")]


def test_a_chunk_goes_before_the_next_line_is_read() -> None:
    def lines() -> object:
        yield b"a"
        yield b"b"
        raise AssertionError("read too far")

    first = next(chunks(lines(), records_max=1))  # type: ignore[arg-type]
    assert first.lines == (b"a",)


@given(
    lines=st.lists(st.binary(max_size=12).map(lambda line: line.replace(b"\n", b""))),
    records_max=st.integers(1, 5),
    bytes_max=st.integers(1, 30),
)
def test_chunks_lose_nothing_and_keep_the_order(
    lines: list[bytes], records_max: int, bytes_max: int
) -> None:
    found = list(chunks(lines, records_max=records_max, bytes_max=bytes_max))
    sent = [
        (n, line)
        for chunk in found
        for n, line in zip(chunk.line_numbers, chunk.lines, strict=True)
    ]
    assert sent == [(n, line.strip()) for n, line in enumerate(lines, start=1) if line.strip()]
    for chunk in found:
        assert len(chunk.lines) <= records_max
        assert len(chunk.lines) == 1 or sum(len(line) + 1 for line in chunk.lines) <= bytes_max
