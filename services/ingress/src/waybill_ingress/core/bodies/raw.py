"""Reads a body that is one record, byte for byte."""

from collections.abc import Iterable

from waybill_ingress.core.rows import RowReader
from waybill_shared.contract.errors import Problem, UserError


def read_raw(pieces: Iterable[bytes], rows: RowReader, key: str | None) -> None:
    if key is not None and rows.rule.key is not None:
        message = f"the key of this input is its column {rows.rule.key!r}"
        raise UserError([Problem(message=message, hint="leave it out", path="query.key")])
    body, size = bytearray(), 0
    for piece in pieces:
        size += len(piece)
        if size <= rows.limits.record_bytes_max:
            body += piece
    if size > rows.limits.record_bytes_max:
        rows.reject_long(size)
    elif size:
        rows.take_record(bytes(body), None if key is None else key.encode())
