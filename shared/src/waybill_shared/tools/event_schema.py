"""Writes `schemas/events/status.v1.schema.json` from the model of an event. Run as
`python -m waybill_shared.tools.event_schema`."""

import json
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter

from waybill_shared.contract import schemas
from waybill_shared.contract.status_events import StatusEvent

SCHEMA: Final = Path(schemas.__file__).parent / "events" / "status.v1.schema.json"


def event_schema() -> str:
    schema = TypeAdapter(StatusEvent).json_schema(mode="serialization")
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    SCHEMA.parent.mkdir(exist_ok=True)
    SCHEMA.write_text(event_schema())
