"""What a record of an input is in Kafka, where that is not the JSON that was sent."""

from collections.abc import Mapping
from typing import Protocol

JsonRow = Mapping[str, object]
"""As it was parsed: fractions as Decimal."""


class RecordForm(Protocol):
    """What it raises as ValueError is the reason why a record is refused."""

    def made_of(self, row: JsonRow) -> bytes:
        """The record of a row that the columns take."""
        ...

    def key_of(self, raw: bytes, name: str | None) -> bytes | None:
        """The key of a record that was sent as it stands; first it is held against the columns."""
        ...


def plain_text(name: str, value: object) -> str:
    """Of what is kept as text, and was sent as something else."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case list() | dict():
            raise ValueError(f"{name}: STRING takes text here, this is an array or an object")
        case _:
            return str(value)
