"""Opens console sinks. They are given the rows as they are."""

from collections.abc import Mapping
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame

from waybill_shared.contract.manifest.model import Sink as SinkManifest
from waybill_shared.contract.manifest.sinks import ConsoleSinkSettings
from waybill_spark.sinks.console.sink import ConsoleSink
from waybill_spark.sinks.contract import Fit, Loader, Opening, SelectedColumn, WantedSink
from waybill_spark.sinks.rows import all_columns
from waybill_spark.tracking.sink import Sink


class ConsoleLoader:
    def open(self, opening: Opening) -> Sink:
        settings = opening.wanted.sink.settings
        assert isinstance(settings, ConsoleSinkSettings)
        return ConsoleSink(opening.life, opening.fences, rows_max=settings.rows)

    def columns(self, sink: SinkManifest, frame: DataFrame) -> Mapping[str, SelectedColumn]:
        return all_columns(frame)

    def check(self, wanted: WantedSink, schema: pa.Schema) -> Fit:
        """Return a fit without changes: a log accepts everything."""
        return Fit()


LOADER: Final[Loader] = ConsoleLoader()
