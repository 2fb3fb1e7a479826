"""Columns that Waybill proposes for a topic, as a value. Never talks to anything."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from waybill.fields import Fields, no_json


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """Columns for an input of a manifest, proposed from the newest records of a topic.

    `schema` accepts each of the `records` that were looked at; `notes` say what a person should
    look at.
    """

    topic: str
    records: int
    schema: str
    notes: tuple[str, ...] = ()
    raw: Mapping[str, object] = field(default_factory=no_json, repr=False, compare=False)

    @classmethod
    def read(cls, fields: Fields) -> "Proposal":
        return cls(
            topic=fields.text("topic"),
            records=fields.whole("records"),
            schema=fields.text("schema"),
            notes=fields.texts("notes"),
            raw=fields.raw,
        )
