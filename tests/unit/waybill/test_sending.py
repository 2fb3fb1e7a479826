"""Files of each format as `waybill send` reads them: cut between records, into bodies that are
whole by themselves, each record with its place in the file."""

import csv
import gzip
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from waybill.cli.sending.csv_rows import read_csv
from waybill.cli.sending.formats import FormatName, format_of
from waybill.cli.sending.json_values import _Values
from waybill.cli.sending.lines import _lines
from waybill.cli.sending.source import OpenedSource, open_source
from waybill.cli.sending.units import Piece, RequestLimits, cut
from waybill.errors import WaybillError

SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "row",
    "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": "string"}],
}
AVRO_ROWS = [{"id": number, "name": f"é{number}"} for number in range(50)]


def pieces(source: OpenedSource, **limits: int) -> list[Piece]:
    return list(cut(source.units.each, source.units.head, RequestLimits(**limits)))


def pieces_of(
    path: Path, content: bytes, given: FormatName | None = None, *, records: int = 2, **options: str
) -> list[Piece]:
    path.write_bytes(content)
    with open_source(str(path), given, options) as source:
        return pieces(source, records=records)


def contents(found: list[Piece]) -> list[bytes]:
    return [piece.content for piece in found]


def places(found: list[Piece]) -> list[list[int]]:
    return [piece.places for piece in found]


def container(codec: str = "null", rows: list[dict[str, Any]] = AVRO_ROWS) -> bytes:
    target = io.BytesIO()
    fastavro.writer(target, SCHEMA, rows, codec=codec, sync_interval=40)
    return target.getvalue()


def test_lines_know_their_number_and_blank_ones_are_none(tmp_path: Path) -> None:
    found = pieces_of(tmp_path / "a.ndjson", b'{"a": 1}\n\n {"a": 2}\r\n{"a": 3}')
    assert contents(found) == [b'{"a": 1}\n{"a": 2}\n', b'{"a": 3}\n']
    assert places(found) == [[1, 3], [4]]


def test_pieces_are_bounded_by_size_and_a_long_record_goes_alone(tmp_path: Path) -> None:
    (tmp_path / "a.ndjson").write_bytes(b"aa\nbb\n" + b"c" * 9 + b"\ndd\nee\n")
    with open_source(str(tmp_path / "a.ndjson"), None, {}) as source:
        found = contents(pieces(source, bytes=6))
    assert found == [b"aa\nbb\n", b"c" * 9 + b"\n", b"dd\nee\n"]


def test_a_piece_goes_before_the_next_record_is_read() -> None:
    def lines() -> Iterator[bytes]:
        yield from (b"a", b"b")
        raise AssertionError("read too far")

    first = next(cut(_lines(lines()), b"", RequestLimits(records=1)))
    assert first.content == b"a\n"


def test_rows_of_csv_are_cut_between_rows_and_have_the_header(tmp_path: Path) -> None:
    text = b'\xef\xbb\xbfid,name\r\n1,"a\nb"\r\n\r\n2,"say ""hi"",\n"\r\n3,c"c\r\n4,d'
    found = pieces_of(tmp_path / "a.csv", text)
    assert contents(found) == [
        b'id,name\r\n1,"a\nb"\r\n\r\n2,"say ""hi"",\n"\r\n',
        b'id,name\r\n3,c"c\r\n4,d',
    ]
    assert places(found) == [[2, 5], [7, 8]]


def test_csv_without_a_header_with_its_own_characters(tmp_path: Path) -> None:
    text = b"1\t'a\\'\n'\n2\tb\n3\tc\n"
    found = pieces_of(tmp_path / "a.tsv", text, quote="'", escape="\\", header="absent")
    assert contents(found) == [b"1\t'a\\'\n'\n2\tb\n", b"3\tc\n"]
    assert places(found) == [[1, 3], [4]]


def test_csv_without_quotes_ends_each_row_with_its_line(tmp_path: Path) -> None:
    found = pieces_of(tmp_path / "a.csv", b'id;n\n1;"a\n2;b"\n3;c\n', delimiter=";", quote="none")
    assert contents(found) == [b'id;n\n1;"a\n2;b"\n', b"id;n\n3;c\n"]


@pytest.mark.parametrize("encoding", ["utf-16", "windows-1252"])
def test_csv_in_other_encodings_becomes_utf_8(tmp_path: Path, encoding: str) -> None:
    text = "id,name\n1,é\n2,ö\n3,ü\n"
    found = pieces_of(tmp_path / "a.csv", text.encode(encoding), encoding=encoding)
    assert [content.decode() for content in contents(found)] == [
        "id,name\n1,é\n2,ö\n",
        "id,name\n3,ü\n",
    ]


@given(
    lines=st.lists(st.binary(max_size=12).map(lambda line: line.replace(b"\n", b""))),
    records=st.integers(1, 5),
    size=st.integers(1, 30),
)
def test_pieces_lose_nothing_and_keep_the_order(
    lines: list[bytes], records: int, size: int
) -> None:
    units = _lines(line + b"\n" for line in lines)
    found = list(cut(units, b"", RequestLimits(records=records, bytes=size)))
    wanted = [(n, line.strip()) for n, line in enumerate(lines, start=1) if line.strip()]
    assert [place for piece in found for place in piece.places] == [n for n, _ in wanted]
    assert b"".join(contents(found)) == b"".join(line + b"\n" for _, line in wanted)
    for piece in found:
        assert len(piece.places) <= records
        assert piece.ends_at == piece.places[-1]
        assert len(piece.places) == 1 or len(piece.content) <= size


def test_a_piece_ends_at_its_last_record_and_not_at_an_empty_line() -> None:
    units = read_csv(io.BytesIO(b"a\n1\n2\n\n\n"), {})
    (piece,) = cut(units.each, units.head, RequestLimits())
    assert (piece.places, piece.ends_at) == ([2, 3], 3)


FIELDS = st.text(st.sampled_from('ab",;\n\\é '), max_size=6)


@given(st.lists(st.tuples(FIELDS, FIELDS), min_size=1, max_size=12), st.integers(1, 4))
def test_cut_csv_holds_the_rows_of_the_whole(rows: list[tuple[str, str]], records: int) -> None:
    target = io.StringIO()
    csv.writer(target).writerows([("x", "y"), *rows])
    whole = io.BytesIO(target.getvalue().encode())

    units = read_csv(whole, {})
    again: list[list[str]] = []
    for piece in cut(units.each, units.head, RequestLimits(records=records)):
        header, *some = csv.reader(io.StringIO(piece.content.decode(), newline=""), strict=True)
        assert header == ["x", "y"]
        assert len(piece.places) == len(some) <= records
        again += some
    assert again == [list(row) for row in rows]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.csv", b'id\n1\n"2\n3\n', "not CSV: the record that begins at line 3: unexpected end"),
        ("a.csv", b'id\n"1"x\n', "not CSV: the record that begins at line 2: "),
        ("a.json", b'[{"a": 1}, {"a": 2}', "not JSON at record 2: the array has no end"),
        ("a.json", b'[{"a": 1} {"a": 2}]', "not JSON at record 1: the array goes on with neither"),
        ("a.json", b'[{"a": 1}] x', "not JSON at record 1: something follows the array"),
        ("a.json", b'{"a": 1}\n{"a": ', "not JSON at record 2: Expecting value"),
        ("a.json", b"[" * 100_000, "not JSON at record 1: it is nested too deep"),
        ("a.avro", b'{"a": 1}', "not an Avro object container: it does not begin as one"),
        ("a.avro", container()[:-1], "the Avro object container is cut off"),
        ("a.avro", container() + b"\x02\x02a" + b"x" * 16, r"block \d+ is damaged"),
        ("a.csv.gz", gzip.compress(b"id\n1\n", mtime=0)[:-9], "cannot read .*a.csv.gz: "),
        (
            "a.csv",
            gzip.compress(b"id\n1\n", mtime=0) + b"x",
            "cannot read .*a.csv: Not a gzipped file",
        ),
    ],
)
def test_a_file_that_is_not_what_it_says_is_an_error(
    tmp_path: Path, name: str, content: bytes, reason: str
) -> None:
    with pytest.raises(WaybillError, match=reason):
        pieces_of(tmp_path / name, content)


@pytest.mark.parametrize(
    "text", ['[{"a": "]}\\""},\n {"b": [1, {}]} , 3.50]', '{"a": "]}\\""}{"b": [1, {}]}\n3.50 ']
)
@pytest.mark.parametrize("read_bytes", [1, 7, 1_000])
def test_json_values_pass_as_they_are_written(text: str, read_bytes: int) -> None:
    class Dripping(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            return super().read(read_bytes)

    found = list(_Values(Dripping(text.encode())).each())
    assert [content for content, _, _ in found] == [
        b'{"a": "]}\\""}\n',
        b'{"b": [1, {}]}\n',
        b"3.50\n",
    ]
    assert [at for _, _, at in found] == [1, 2, 3]


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_containers_are_cut_between_blocks_and_each_part_is_one(tmp_path: Path, codec: str) -> None:
    found = pieces_of(tmp_path / "a.avro", container(codec), records=12)
    assert len(found) > 3
    parts = [list(fastavro.reader(io.BytesIO(content))) for content in contents(found)]
    assert [row for part in parts for row in part] == AVRO_ROWS
    assert [len(part) for part in parts] == [len(piece.places) for piece in found]
    assert [place for piece in found for place in piece.places] == list(range(1, 51))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.ndjson", "ndjson"), ("a.jsonl.gz", "ndjson"), ("A.JSON", "json"), ("a.csv", "csv"),
        ("a.csv.gz", "csv"), ("a.tsv", "tsv"), ("a.avro", "avro"), ("a.bin.gz", "raw"),
        ("/dev/fd/63", "ndjson"), ("-", "ndjson"), ("a.b/rows", "ndjson"),
    ],
)  # fmt: skip
def test_the_ending_says_the_format(name: str, expected: str) -> None:
    assert format_of(name) == expected


@pytest.mark.parametrize("name", ["a.parquet", "a.txt", "a.xlsx.gz"])
def test_an_ending_that_says_nothing_asks_for_the_format(name: str) -> None:
    with pytest.raises(typer.BadParameter, match="add --format"):
        format_of(name)


@pytest.mark.parametrize("name", ["a.ndjson.gz", "a.ndjson"])
def test_gzip_is_unpacked_whatever_the_name_says(tmp_path: Path, name: str) -> None:
    packed = gzip.compress(b'{"a": 1}\n', mtime=0) + gzip.compress(b'{"a": 2}\n{"a": 3}\n', mtime=0)
    assert contents(pieces_of(tmp_path / name, packed)) == [b'{"a": 1}\n{"a": 2}\n', b'{"a": 3}\n']


def test_a_raw_file_is_one_record_and_unpacked_only_by_its_name(tmp_path: Path) -> None:
    packed = gzip.compress(b"\x00\n\xff", mtime=0)
    assert contents(pieces_of(tmp_path / "a.bin", b"\x00\n\xff")) == [b"\x00\n\xff"]
    assert contents(pieces_of(tmp_path / "a.bin.gz", packed)) == [b"\x00\n\xff"]
    assert contents(pieces_of(tmp_path / "b.bin.gz", packed, FormatName.RAW)) == [packed]
    assert contents(pieces_of(tmp_path / "a.bin", packed)) == [packed]
    assert contents(pieces_of(tmp_path / "empty.bin", b"")) == []


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("a.ndjson", {"delimiter": ";"}),
        ("a.csv", {"key": "k"}),
        ("a.csv", {"delimiter": ";;"}),
        ("a.csv", {"encoding": "utf-99"}),
        ("a.csv", {"delimiter": '"'}),
    ],
)
def test_options_that_make_no_sense_are_usage_errors(
    tmp_path: Path, name: str, options: dict[str, str]
) -> None:
    (tmp_path / name).write_bytes(b"{}\n")
    opened = open_source(str(tmp_path / name), None, options)
    with pytest.raises(typer.BadParameter), opened:
        pass


def test_json_with_a_byte_order_mark(tmp_path: Path) -> None:
    text = "\ufeff" + json.dumps([{"a": 1}])
    assert contents(pieces_of(tmp_path / "a.json", text.encode())) == [b'{"a": 1}\n']
