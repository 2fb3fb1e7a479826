"""The form of an input's records in Kafka, if that is not the JSON that was sent."""

from collections.abc import Mapping
from typing import Protocol

JsonRow = Mapping[str, object]
"""A parsed row: fractions are Decimal."""


class RecordForm(Protocol):
    """Writes records. A ValueError that it raises is the reason why a record is refused."""

    def made_of(self, row: JsonRow) -> bytes:
        """Return the record for a row that the columns accept."""
        ...

    def key_of(self, raw: bytes, name: str | None) -> bytes | None:
        """Return the key of a record that was sent in its final form. It is checked first."""
        ...


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
