"""Examples of answers for the documentation; a test checks each with its model."""

from collections.abc import Mapping

from waybill_shared.http.examples import JsonObject, example
from waybill_status.adapters.http.streams import EVENT_STREAM


def shown(
    name: str, *, streamed: bool = False, others: Mapping[str, str] | None = None
) -> JsonObject:
    """Return what a route says of an answer with the example of that name. `streamed`: it is also
    sent as events. `others`: names of more examples, by what they show."""
    streams = {EVENT_STREAM: {"schema": {"type": "string"}}} if streamed else {}
    found: JsonObject = {"example": example(f"status/{name}")}
    if others:
        named = {"as it mostly is": name, **others}
        found = {
            "examples": {what: {"value": example(f"status/{each}")} for what, each in named.items()}
        }
    return {"content": {"application/json": found, **streams}}
