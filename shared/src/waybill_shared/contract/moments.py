"""Moments, which are milliseconds inside and text in answers."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import Field, PlainSerializer


def format_moment(ms: int) -> str:
    moment = datetime.fromtimestamp(ms / 1000, tz=UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


Moment = Annotated[
    int,
    PlainSerializer(format_moment, return_type=str),
    Field(json_schema_extra={"type": "string", "format": "date-time"}),
]
