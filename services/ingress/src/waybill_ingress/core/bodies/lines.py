"""Reads NDJSON: one record per line. Blank lines are not counted as records."""

from collections.abc import Iterable

from waybill_ingress.core.rows import RowReader


def read_ndjson(pieces: Iterable[bytes], rows: RowReader) -> None:
    most = rows.limits.record_bytes_max + len(b"\r")
    rest, long = b"", _LongLine()
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        if long.size and lines:
            long.take(lines.pop(0))
            long.end(rows)
            long = _LongLine()
        for line in lines:
            _take(line, rows)
        if long.size or len(rest) > most:
            long.take(rest)
            rest = b""
    if long.size:
        long.end(rows)
    else:
        _take(rest, rows)


class _LongLine:
    """A line that is too long: only its size is kept."""

    def __init__(self) -> None:
        self.size = 0
        self._blank = True
        self._last = b""

    def take(self, piece: bytes) -> None:
        self.size += len(piece)
        self._blank = self._blank and (not piece or piece.isspace())
        self._last = piece[-1:] or self._last

    def end(self, rows: RowReader) -> None:
        if not self._blank:
            rows.reject_long(self.size - (self._last == b"\r"))


def _take(line: bytes, rows: RowReader) -> None:
    if line and not line.isspace():
        rows.take_line(line.removesuffix(b"\r"))
