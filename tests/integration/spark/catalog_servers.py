"""Catalogs of each kind and their stores, as a file of connections has them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from integration.spark.iceberg_sinks import (
    NAME,
    SCHEMA,
)
from waybill_shared.contract.driver import SinkPlaces
from waybill_shared.contract.manifest.model import Sink
from waybill_spark.sinks.contract import Fit, WantedSink
from waybill_spark.sinks.iceberg.catalogs import OpenCatalog
from waybill_spark.sinks.iceberg.loader import LOADER

Told = dict[str, dict[str, Any]]
Opened = Callable[[Told, str], OpenCatalog]
SECRET, BEARER = "WAYBILL_TEST_OBJECTS_SECRET", "WAYBILL_TEST_CATALOG_TOKEN"
READER = "WAYBILL_TEST_READER_SECRET"


def checked(told: Told, connection: str, folder: Path) -> Fit:
    file = folder / "connections.yaml"
    file.write_text(json.dumps(told))
    places = SinkPlaces(lakehouse_folder=folder, connections_file=file)
    raw = {"name": "lake", "iceberg": {"connection": connection, "table": NAME}}
    wanted = WantedSink(sink=Sink.model_validate(raw), pipeline_uid="uid", places=places)
    return LOADER.check(wanted, SCHEMA)
