"""What `waybill send` cuts a file into is what ingress reads: each part by itself, all records in
their order, and reasons with the place in the file."""

import csv
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import fastavro
import pytest

from unit.ingress.bodies import Rows, rows_of
from waybill.cli.sending.formats import FORMATS, FormatName
from waybill.cli.sending.source import open_source
from waybill.cli.sending.units import Piece, RequestLimits, cut
from waybill_ingress.core.bodies.forms import form_of
from waybill_ingress.core.rows import RowLimits, RowRule
from waybill_shared.contract.manifest.columns import parse_columns

COLUMNS = "order_id BIGINT, customer STRING, amount DECIMAL(10,2)"
RULE = RowRule(columns=parse_columns(COLUMNS), key=None)
LIMITS = RowLimits(records_max=3, record_bytes_max=1_000, bytes_max=10_000)
ROWS: list[dict[str, Any]] = [
    {"order_id": number, "customer": 'é "a",\n;' if number % 2 else "b", "amount": "1.25"}
    for number in range(10)
]
FIELDS = [
    {"name": "order_id", "type": "long"},
    {"name": "customer", "type": "string"},
    {"name": "amount", "type": "string"},
]


def as_csv(rows: list[dict[str, Any]] = ROWS, delimiter: str = ",", *, header: bool = True) -> str:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter)
    writer.writerows([list(rows[0])] if header else [])
    writer.writerows(row.values() for row in rows)
    return text.getvalue()


def as_avro(codec: str) -> bytes:
    target = io.BytesIO()
    schema = {"type": "record", "name": "row", "fields": FIELDS}
    fastavro.writer(target, schema, ROWS, codec=codec, sync_interval=30)
    return target.getvalue()


def read_parts(path: Path, content: bytes, options: Mapping[str, str]) -> list[tuple[Piece, Rows]]:
    """Each part, and what ingress makes of it."""
    path.write_bytes(content)
    with open_source(str(path), None, options) as source:
        form = source.format
        found = []
        for piece in cut(source.units.each, source.units.head, RequestLimits(records=3)):
            sent = form.options_to_send(source.options, piece.begins_at)
            reader = form_of(form.media_type, [*sent.items()])
            found.append((piece, rows_of(reader, piece.content, RULE, LIMITS)))
    return found


FILES: list[tuple[str, bytes, dict[str, str]]] = [
    ("a.ndjson", b"".join(json.dumps(row).encode() + b"\n\n" for row in ROWS), {}),
    ("a.json", json.dumps(ROWS, indent=2, ensure_ascii=False).encode(), {}),
    ("objects.json", "".join(map(json.dumps, ROWS)).encode(), {}),
    ("a.csv", as_csv().encode("utf-8-sig"), {}),
    ("other.csv", as_csv(delimiter=";", header=False).encode("utf-16"),
     {"delimiter": ";", "header": "absent", "encoding": "utf-16"}),
    ("a.tsv", as_csv(delimiter="\t").encode(), {}),
    ("a.avro", as_avro("null"), {}),
    ("packed.avro", as_avro("deflate"), {}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "options"), FILES, ids=[each[0] for each in FILES])
def test_ingress_reads_each_part(
    tmp_path: Path, name: str, content: bytes, options: dict[str, str]
) -> None:
    parts = read_parts(tmp_path / name, content, options)
    assert len(parts) > 3
    read = [json.loads(record.value) for _, rows in parts for record in rows.records]
    assert [{**row, "amount": str(row["amount"])} for row in read] == ROWS
    assert all(len(piece.places) == len(rows.records) for piece, rows in parts)
    assert all(rows.rejected == [] for _, rows in parts)


def test_reasons_of_csv_name_the_line_of_the_file(tmp_path: Path) -> None:
    rows = [{**row, "amount": "x"} for row in ROWS]
    text = as_csv(rows).replace("\r\n2,", "\r\n\r\n2,")
    lines = [n for n, line in enumerate(text.split("\n"), start=1) if line[:1].isdigit()]
    parts = read_parts(tmp_path / "a.csv", text.encode(), {})
    reasons = [rejection.reason for _, found in parts for rejection in found.rejected]
    assert [reason.partition(",")[0] for reason in reasons] == [f"line {n}" for n in lines]
    assert [place for piece, _ in parts for place in piece.places] == lines


@pytest.mark.parametrize("name", FORMATS)
def test_ingress_knows_each_format_and_its_options(name: FormatName) -> None:
    form = FORMATS[name]
    given = {"delimiter": "|", "quote": "'", "escape": "\\", "header": "absent", "null": "N",
             "encoding": "utf-16", "key": "k"}  # fmt: skip
    options = form.options({option: given[option] for option in form.takes})
    form_of(form.media_type, [*form.options_to_send(options, 1).items()])
