"""What one request of `send` carries.

It is either records that are written as NDJSON, or a body that is already in one of the formats
that Waybill accepts. Never reads a record's meaning: Waybill reports what is wrong in it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from waybill.ndjson import Record, encode

NDJSON = "application/x-ndjson"


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    """Records in a format of their own, for example `text/csv`; docs/formats.md lists the media
    types, and the `options` of each."""

    content: bytes
    media_type: str
    options: Mapping[str, str] = field(default_factory=dict)


Records = Iterable[Record] | Payload


def payload_of(records: Records) -> Payload:
    """Return the body of the request."""
    if isinstance(records, Payload):
        return records
    return Payload(content=encode(records), media_type=NDJSON)
