"""Opens Iceberg sinks. They are given the rows as they are."""

from collections.abc import Mapping
from typing import Final

from pyspark.sql import DataFrame

from waybill_shared.contract.manifest.model import Sink as SinkManifest
from waybill_shared.contract.manifest.sinks import IcebergSinkSettings
from waybill_spark.sinks.contract import Loader, Opening, Sink, Taken
from waybill_spark.sinks.iceberg.lakehouse import open_catalog
from waybill_spark.sinks.iceberg.sink import IcebergSink
from waybill_spark.sinks.rows import all_columns


class IcebergLoader:
    def open(self, opening: Opening) -> Sink:
        settings = opening.sink.settings
        assert isinstance(settings, IcebergSinkSettings)
        catalog = open_catalog(opening.lakehouse_folder)
        return IcebergSink(opening.life, catalog, settings.table, schema=opening.schema)

    def columns(self, sink: SinkManifest, frame: DataFrame) -> Mapping[str, Taken]:
        return all_columns(frame)


LOADER: Final[Loader] = IcebergLoader()
