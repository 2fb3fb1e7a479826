"""The description of the events of `waybill.status` for programs of others, as AsyncAPI has it."""

import json
from typing import Any, Final

from pydantic import TypeAdapter

from waybill_shared.contract.schemas import SCHEMAS
from waybill_shared.contract.status_events import DATA_OF, MEDIA_TYPE, StatusEvent
from waybill_shared.contract.version import VERSION
from waybill_shared.contract.words import EventType

PATH: Final = "/asyncapi.json"
REF: Final = "#/components/messages/{name}"
Json = dict[str, Any]


def name_of(kind: EventType) -> str:
    """Convert `waybill.token.final` to `token_final`."""
    return kind.removeprefix("waybill.").replace(".", "_")


def payload_of(kind: EventType) -> Json:
    """Return the schema of the complete event of a type."""
    data = TypeAdapter(DATA_OF[kind]).json_schema(mode="serialization")
    event = TypeAdapter(StatusEvent).json_schema(mode="serialization")
    definitions = {**event.pop("$defs", {}), **data.pop("$defs", {})}
    properties = {**event["properties"], "type": {"const": str(kind)}, "data": data}
    payload: Json = _in_place({**event, "properties": properties}, definitions)
    return payload


def _in_place(value: Any, definitions: Json) -> Any:  # noqa: ANN401 - JSON
    """Replace references by their definitions, because in a larger document their locations
    differ.
    """
    if isinstance(value, list):
        return [_in_place(each, definitions) for each in value]
    if not isinstance(value, dict):
        return value
    if "$ref" in value:
        return _in_place(definitions[value["$ref"].rpartition("/")[2]], definitions)
    return {name: _in_place(each, definitions) for name, each in value.items()}


def document() -> Json:
    messages = {name_of(kind): _message(kind) for kind in EventType}
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Waybill",
            "version": VERSION,
            "description": "What programs receive instead of asking; docs/watches.md says more.",
        },
        "defaultContentType": MEDIA_TYPE,
        "channels": {
            "status": {
                "address": "waybill.status",
                "description": "A topic of Kafka, whose name begins with WAYBILL_TOPIC_PREFIX."
                " Read committed records only. The key is the id of the watch, or the uid of the"
                " pipeline.",
                "messages": {name: {"$ref": REF.format(name=name)} for name in messages},
            }
        },
        "operations": {"report": {"action": "send", "channel": {"$ref": "#/channels/status"}}},
        "components": {"messages": messages},
    }


def _message(kind: EventType) -> Json:
    name = name_of(kind)
    example = json.loads((SCHEMAS / "examples" / f"{name}.json").read_text(encoding="utf-8"))
    return {
        "name": str(kind),
        "title": kind.meaning,
        "contentType": MEDIA_TYPE,
        "payload": payload_of(kind),
        "examples": [{"name": name, "payload": example}],
    }
