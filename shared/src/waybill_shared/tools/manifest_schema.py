"""Writes `schemas/manifest/native.v1.schema.json` from the manifest's model, for editors that
complete and check YAML. Run as `python -m waybill_shared.tools.manifest_schema`."""

import json
from pathlib import Path
from typing import Final

from waybill_shared.contract import schemas
from waybill_shared.contract.manifest.model import Manifest

SCHEMA: Final = Path(schemas.__file__).parent / "manifest" / "native.v1.schema.json"


def manifest_schema() -> str:
    return json.dumps(Manifest.model_json_schema(by_alias=True), indent=2) + "\n"


if __name__ == "__main__":
    SCHEMA.parent.mkdir(exist_ok=True)
    SCHEMA.write_text(manifest_schema())
