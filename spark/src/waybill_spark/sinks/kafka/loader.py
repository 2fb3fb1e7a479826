"""Opens Kafka sinks. Their rows are JSON already, and a key."""

from collections.abc import Mapping
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from waybill_shared.contract.manifest.model import Sink as SinkManifest
from waybill_shared.contract.manifest.sinks import KafkaSinkSettings
from waybill_shared.contract.words import Guarantee
from waybill_spark.sinks.contract import Fit, Loader, Opening, SelectedColumn, WantedSink
from waybill_spark.sinks.kafka.sending import KEY, VALUE
from waybill_spark.sinks.kafka.sink import KafkaSink, KafkaSinkTarget
from waybill_spark.sinks.rows import column_of
from waybill_spark.tracking.sink import Sink

TIMESTAMP_TEXT: Final = "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"  # microseconds, as Spark keeps them


class KafkaLoader:
    def open(self, opening: Opening) -> Sink:
        assert opening.topic_id is not None
        settings = opening.wanted.sink.settings
        assert isinstance(settings, KafkaSinkSettings)
        target = KafkaSinkTarget(
            topic=opening.wanted.sink.settings.target,
            topic_id=opening.topic_id,
            absent_s=opening.topic_absent_s,
            at_least_once=settings.guarantee is not Guarantee.ONCE,
        )
        return KafkaSink(opening.life, target, opening.fences)

    def columns(self, sink: SinkManifest, frame: DataFrame) -> Mapping[str, SelectedColumn]:
        settings = sink.settings
        assert isinstance(settings, KafkaSinkSettings)
        key = F.lit(None) if settings.key is None else column_of(settings.key)
        fields = F.struct(*map(column_of, frame.columns))
        value = F.to_json(fields, {"timestampFormat": TIMESTAMP_TEXT})
        return {
            KEY: SelectedColumn(KEY + sink.name, key.cast("string")),
            VALUE: SelectedColumn(VALUE, value),
        }

    def check(self, wanted: WantedSink, schema: pa.Schema) -> Fit:
        """Return a fit without changes: JSON accepts all that has a schema."""
        return Fit()


LOADER: Final[Loader] = KafkaLoader()
