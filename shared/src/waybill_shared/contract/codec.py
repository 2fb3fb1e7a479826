"""Messages to bytes and back:

Avro single-object encoding with the schemas of `schemas/avro`.

Each body follows a header of ten bytes: a marker and the fingerprint of the schema. So a reader
refuses what was written with another schema instead of guessing.
"""

import io
import json
from functools import cache
from typing import Any, Final, TypeVar, cast

import fastavro
from pydantic import TypeAdapter, ValidationError

from waybill_shared.contract import events
from waybill_shared.contract.connectors import ConnectorProgress
from waybill_shared.contract.deliveries import WebhookDelivery
from waybill_shared.contract.errors import InvalidMessage
from waybill_shared.contract.lifecycle_events import Beat, LifecycleEvent
from waybill_shared.contract.replays import ReplayMessage
from waybill_shared.contract.requests import RequestAnswer, RequestClaim
from waybill_shared.contract.schemas import SCHEMAS
from waybill_shared.contract.status_events import StatusEvent
from waybill_shared.contract.watches import TokenWatch

MARKER = b"\xc3\x01"
HEADER_BYTES = 10

TOPIC_OF: dict[type, str] = {
    events.Fact: "commits",
    events.PipelineRecord: "pipelines",
    events.Command: "commands",
    events.Reply: "replies",
    LifecycleEvent: "lifecycle",
    Beat: "beats",
    events.Fence: "fences",
    events.Snapshot: "frontiers",
    ReplayMessage: "replays",
    RequestClaim: "requests",
    RequestAnswer: "answers",
    ConnectorProgress: "connectors",
    TokenWatch: "watches",
    WebhookDelivery: "deliveries",
    StatusEvent: "status",
}
AS_JSON: Final = frozenset({StatusEvent})
"""Which strangers read."""

M = TypeVar("M", bound=events.Message)
_adapters: dict[type, TypeAdapter[events.Message]] = {
    message_type: TypeAdapter(message_type) for message_type in TOPIC_OF
}


def schema_path(topic: str) -> str:
    if topic in {TOPIC_OF[kind] for kind in AS_JSON}:
        return f"events/{topic}.v1.schema.json"
    return f"avro/{topic}.v1.avsc"


def load_schema(topic: str) -> dict[str, Any]:
    """Return the raw schema of a topic. `topic` is its name without prefix."""
    resource = SCHEMAS / schema_path(topic)
    return cast(dict[str, Any], json.loads(resource.read_text()))


@cache
def _parse(topic: str) -> tuple[Any, bytes]:
    raw = load_schema(topic)
    canonical = fastavro.schema.to_parsing_canonical_form(raw)
    fingerprint = fastavro.schema.fingerprint(canonical, "CRC-64-AVRO")
    return fastavro.parse_schema(raw), MARKER + bytes.fromhex(fingerprint)


def encode(message: events.Message) -> bytes:
    if type(message) in AS_JSON:
        return to_json(message).encode()
    schema, header = _parse(TOPIC_OF[type(message)])
    out = io.BytesIO()
    out.write(header)
    fastavro.schemaless_writer(out, schema, _adapters[type(message)].dump_python(message))
    return out.getvalue()


def decode(message_type: type[M], raw: bytes) -> M:
    """Decode the message in `raw`.

    Raise InvalidMessage if it is not one of this type and schema version.
    """
    if message_type in AS_JSON:
        return _from_text(message_type, raw)
    schema, header = _parse(TOPIC_OF[message_type])
    if raw[:HEADER_BYTES] != header:
        raise InvalidMessage(
            f"not a {message_type.__name__}: the first {HEADER_BYTES} bytes are"
            f" {raw[:HEADER_BYTES].hex()}, expected {header.hex()}"
        )
    body = io.BytesIO(raw[HEADER_BYTES:])
    try:
        record = fastavro.schemaless_reader(body, schema, None)
        message = cast(M, _adapters[message_type].validate_python(record))
    except (EOFError, ValueError, IndexError, ValidationError) as error:
        raise InvalidMessage(f"a damaged {message_type.__name__}: {error}") from error
    if extra := len(raw) - HEADER_BYTES - body.tell():
        raise InvalidMessage(f"a damaged {message_type.__name__}: {extra} byte(s) after it")
    return message


def _from_text(message_type: type[M], raw: bytes) -> M:
    try:
        return cast(M, _adapters[message_type].validate_json(raw))
    except ValidationError as error:
        raise InvalidMessage(f"a damaged {message_type.__name__}: {error}") from error


def to_json(message: events.Message) -> str:
    """Return the message as JSON, for places that keep text (an Iceberg property)."""
    return _adapters[type(message)].dump_json(message).decode()


def from_json(message_type: type[M], text: str) -> M:
    return cast(M, _adapters[message_type].validate_json(text))
