"""Writes records of a CSV input: a line of its columns, in their order."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from waybill_ingress.core.encoders.form import JsonRow, RecordForm, plain_text
from waybill_shared.contract.formats.csv_lines import CsvForm
from waybill_shared.contract.formats.csv_values import converter
from waybill_shared.contract.manifest.columns import Column
from waybill_shared.contract.manifest.formats import RecordKeys

MOMENT: Final = "TIMESTAMP"


def form_of(keys: RecordKeys) -> RecordForm:
    return CsvRecords(keys.csv or CsvForm(), keys.list_columns())


class CsvRecords:
    def __init__(self, form: CsvForm, columns: Sequence[Column]) -> None:
        self._form = form
        self._columns = [(column, converter(column)) for column in columns]

    def write(self, row: JsonRow) -> bytes:
        fields = [_field(column, row.get(column.name)) for column, _ in self._columns]
        for (_, convert), text in zip(self._columns, fields, strict=True):
            _, reason = ("", None) if text is None else convert(text)
            if reason is not None:  # JSON accepts some numbers that CSV does not
                raise ValueError(reason)
        return self._form.join(fields).encode()

    def key_of(self, raw: bytes, name: str | None) -> bytes | None:
        try:
            fields = self._form.split(raw.decode())
        except UnicodeDecodeError as error:
            raise ValueError(f"byte {error.start + 1} is not UTF-8") from error
        if len(fields) != len(self._columns):
            raise ValueError(f"{len(fields)} fields, where {len(self._columns)} are expected")
        key: str | None = None
        for number, (text, (column, convert)) in enumerate(
            zip(fields, self._columns, strict=True), 1
        ):
            if text is None:
                if column.required:
                    raise ValueError(f"field {number}: {column.name}: is null, and is NOT NULL")
                continue
            json, reason = convert(text)
            if reason is not None:
                raise ValueError(f"field {number}: {reason}")
            if column.name == name:
                key = text if json.startswith('"') else json
        return None if key is None else key.encode()


def _field(column: Column, value: object) -> str | None:
    if value is None:
        return None
    if column.type == MOMENT and isinstance(value, int):
        return datetime.fromtimestamp(value, UTC).isoformat()
    return plain_text(column.name, value)
