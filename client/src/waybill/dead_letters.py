"""Records that a stage could not process, as values of the outcome of their token.

Never talks to anything.
"""

import re
from base64 import b64encode
from dataclasses import dataclass
from typing import TypedDict

from waybill.fields import Fields

_LOCATION = re.compile(r"([a-zA-Z0-9._-]{1,249})\[(\d{1,9})\]@(\d{1,18})")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordLocation:
    """The location of a record in Kafka."""

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.topic}[{self.partition}]@{self.offset}"

    @classmethod
    def parse(cls, text: str) -> "RecordLocation":
        """Parse TOPIC[PARTITION]@OFFSET. Raise ValueError if `text` is something else."""
        found = _LOCATION.fullmatch(text)
        if found is None:
            raise ValueError(f"{text!r} is no TOPIC[PARTITION]@OFFSET, as orders.in[0]@4711")
        topic, partition, offset = found.groups()
        return cls(topic=topic, partition=int(partition), offset=int(offset))

    @classmethod
    def read(cls, fields: Fields) -> "RecordLocation":
        return cls(
            topic=fields.text("topic"),
            partition=fields.whole("partition"),
            offset=fields.whole("offset"),
        )


class Edit(TypedDict, total=False):
    """The change of a dead record: of its value, its key, or both. What is absent stays as it was;
    None means none."""

    value: str | bytes | None
    key: str | bytes | None


def edit_body(edit: Edit) -> dict[str, str | None]:
    """Return the edit as the API has it."""
    body: dict[str, str | None] = {}
    if "key" in edit:
        body |= _member("key", edit["key"])
    if "value" in edit:
        body |= _member("value", edit["value"])
    return body


def _member(name: str, content: str | bytes | None) -> dict[str, str | None]:
    """Return the content as text, or in base64 if it is no UTF-8."""
    if not isinstance(content, bytes):
        return {name: content}
    try:
        return {name: content.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": b64encode(content).decode()}


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A record that went to a dead-letter topic, why, and its location there (`dead_letter`).

    If `exact` is False, up to `up_to` of the records from `start` to before `end` failed. Then a
    later stage could not process what they had become, or it is long ago. `sink` is the only one
    that lacks the record; None: all of the stage do. `id` is what `Client.replay` accepts.
    `replayed_as` is its location since it was sent again.
    """

    topic: str
    partition: int
    start: int
    end: int
    up_to: int = 1
    exact: bool = True
    stage: str
    sink: str | None
    reason: str
    rule: str | None
    message: str
    dead_letter: RecordLocation | None
    id: str | None = None
    replayed_as: RecordLocation | None

    @property
    def offset(self) -> int:
        """The offset of the record; if it is not `exact`, of the first that it may be."""
        return self.start

    @classmethod
    def read(cls, fields: Fields) -> "DeadLetter":
        exact = fields.flag("exact")
        start = fields.whole("offset" if exact else "start")
        return cls(
            topic=fields.text("topic"),
            partition=fields.whole("partition"),
            start=start,
            end=start + 1 if exact else fields.whole("end"),
            up_to=1 if exact else fields.whole("up_to"),
            exact=exact,
            stage=fields.text("stage"),
            sink=fields.text_or_none("sink"),
            reason=fields.text("reason"),
            rule=fields.text_or_none("rule"),
            message=fields.text_or_none("message") or "",
            dead_letter=_place(fields, "dead_letter"),
            id=fields.text_or_none("id"),
            replayed_as=_place(fields, "replayed_as"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """Up to `up_to` records that the manifest says to drop were in the token's batches."""

    rule: str
    stage: str
    up_to: int

    @classmethod
    def read(cls, fields: Fields) -> "Dropped":
        return cls(
            rule=fields.text("rule"), stage=fields.text("stage"), up_to=fields.whole("up_to")
        )


def _place(fields: Fields, name: str) -> RecordLocation | None:
    found = fields.object_or_none(name)
    return None if found is None else RecordLocation.read(found)
