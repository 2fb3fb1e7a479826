"""Opens Iceberg sinks. They are given the rows as they are."""

from collections.abc import Mapping
from typing import Final

import pyarrow as pa
from pyiceberg.exceptions import NoSuchTableError
from pyspark.sql import DataFrame
from sqlalchemy.exc import SQLAlchemyError

from waybill_shared.contract.driver import SinkPlaces
from waybill_shared.contract.manifest.model import Sink as SinkManifest
from waybill_shared.contract.manifest.sinks import IcebergSinkSettings
from waybill_spark.sinks.contract import Loader, Opening, Sink, Taken
from waybill_spark.sinks.iceberg.lakehouse import has_catalog, open_catalog
from waybill_spark.sinks.iceberg.sink import IcebergSink, refuse_unfit, unreachable
from waybill_spark.sinks.rows import all_columns


class IcebergLoader:
    def open(self, opening: Opening) -> Sink:
        settings = opening.sink.settings
        assert isinstance(settings, IcebergSinkSettings)
        catalog = open_catalog(opening.places.lakehouse_folder)
        return IcebergSink(opening.life, catalog, settings.table, schema=opening.schema)

    def columns(self, sink: SinkManifest, frame: DataFrame) -> Mapping[str, Taken]:
        return all_columns(frame)

    def check(self, sink: SinkManifest, schema: pa.Schema, places: SinkPlaces) -> None:
        settings = sink.settings
        assert isinstance(settings, IcebergSinkSettings)
        if not has_catalog(places.lakehouse_folder):
            return  # it is made with its first table, of the rows' own columns
        catalog = open_catalog(places.lakehouse_folder)
        try:
            refuse_unfit(sink.name, catalog.load_table(settings.table), schema)
        except NoSuchTableError:
            pass
        except (SQLAlchemyError, OSError) as error:
            raise unreachable(catalog, sink.name, settings.table, error) from error


LOADER: Final[Loader] = IcebergLoader()
