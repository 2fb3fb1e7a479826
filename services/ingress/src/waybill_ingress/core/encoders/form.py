"""The form of an input's records in Kafka, if that is not the JSON that was sent."""

from collections.abc import Mapping
from importlib import import_module
from typing import Protocol

from waybill_shared.contract.manifest.formats import FORMATS, RecordKeys

JsonRow = Mapping[str, object]
"""A parsed row: fractions are Decimal."""


class RecordForm(Protocol):
    """Writes records. A ValueError that it raises is the reason why a record is refused."""

    def write(self, row: JsonRow) -> bytes:
        """Return the record for a row that the columns accept."""

    def key_of(self, raw: bytes, name: str | None) -> bytes | None:
        """Return the key of a record that was sent in its final form. It is checked first."""


def form_of(keys: RecordKeys) -> RecordForm | None:
    """Return what writes the records of an input; None if a record is the JSON that was sent."""
    writer = FORMATS[keys.format].writer
    form: RecordForm | None = import_module(writer).form_of(keys) if writer else None
    return form


def plain_text(name: str, value: object) -> str:
    """Return the text of a value that is kept as text but was sent as another type."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case list() | dict():
            raise ValueError(f"{name}: STRING takes text here, this is an array or an object")
        case _:
            return str(value)
