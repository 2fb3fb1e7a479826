"""NDJSON: one record a line. Blank lines are no records and are not counted."""

from collections.abc import Iterable

from waybill_ingress.core.rows import RowReader


def read_ndjson(pieces: Iterable[bytes], rows: RowReader) -> None:
    rest, passed_by = b"", 0
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        if passed_by and lines:
            rows.reject_long(passed_by + len(lines.pop(0)))
            passed_by = 0
        for line in lines:
            _take(line, rows)
        if passed_by or len(rest) > rows.limits.record_bytes_max:
            passed_by += len(rest)
            rest = b""
    if passed_by:
        rows.reject_long(passed_by)
    else:
        _take(rest, rows)


def _take(line: bytes, rows: RowReader) -> None:
    if line and not line.isspace():
        rows.take_line(line.removesuffix(b"\r"))
