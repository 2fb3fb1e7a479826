"""Opens Iceberg sinks. They are given the rows as they are."""

from collections.abc import Mapping
from contextlib import closing
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame

from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.contract.manifest.iceberg import IcebergSinkSettings
from waybill_shared.contract.manifest.model import Sink as SinkManifest
from waybill_shared.process.clock import SystemClock
from waybill_spark.sinks.contract import Fit, Loader, Opening, SelectedColumn, WantedSink
from waybill_spark.sinks.iceberg.catalogs import is_yet_to_be_made, open_catalog
from waybill_spark.sinks.iceberg.connection import Reached, translate_errors
from waybill_spark.sinks.iceberg.fitting import plan_change
from waybill_spark.sinks.iceberg.maintenance import do_all
from waybill_spark.sinks.iceberg.rights import refuse_no_rights
from waybill_spark.sinks.iceberg.sink import IcebergSink
from waybill_spark.sinks.iceberg.tables import IcebergTarget, find_table
from waybill_spark.sinks.rows import all_columns
from waybill_spark.tracking.sink import Sink


class IcebergLoader:
    def open(self, opening: Opening) -> Sink:
        target = _target(opening.wanted)
        catalog = open_catalog(
            target.settings.connection, opening.wanted.places, what=f"sink {target.sink}"
        )
        return IcebergSink(opening.life, catalog, target, schema=opening.schema)

    def columns(self, sink: SinkManifest, frame: DataFrame) -> Mapping[str, SelectedColumn]:
        return all_columns(frame)

    def check(self, wanted: WantedSink, schema: pa.Schema) -> Fit:
        target = _target(wanted)
        if is_yet_to_be_made(target.settings.connection, wanted.places):
            return Fit(tuple(plan_change(target, None, schema).describe()))
        what = f"sink {target.sink}"
        catalog = open_catalog(target.settings.connection, wanted.places, what=what, make=False)
        with (
            closing(catalog.tables),
            translate_errors(Reached(f"{what}: table {target.name}", catalog.place)),
        ):
            table = find_table(catalog.tables, target.name)
            said = tuple(plan_change(target, table, schema).describe())
            refuse_no_rights(catalog.tables, table, target)
            return Fit(said, table=catalog.identity(target.name, table))

    def maintain(self, wanted: WantedSink, *, dry_run: bool) -> dict[str, dict[str, int]]:
        target = _target(wanted)
        missing = UserError([Problem(message=f"there is no table {target.name} yet")])
        if is_yet_to_be_made(target.settings.connection, wanted.places):
            raise missing
        what = f"sink {target.sink}: table {target.name}"
        catalog = open_catalog(target.settings.connection, wanted.places, what=what, make=False)
        with closing(catalog.tables), translate_errors(Reached(what, catalog.place)):
            table = find_table(catalog.tables, target.name)
            if table is None:
                raise missing
            return do_all(table, target.settings.maintenance_tasks, SystemClock(), dry_run=dry_run)


def _target(wanted: WantedSink) -> IcebergTarget:
    settings = wanted.sink.settings
    assert isinstance(settings, IcebergSinkSettings)
    about = {ABOUT[name]: value for name, value in wanted.about.items()}
    return IcebergTarget(
        sink=wanted.sink.name, settings=settings, pipeline_uid=wanted.pipeline_uid, properties=about
    )


ABOUT: Final = {"title": "waybill.title", "description": "comment", "tags": "waybill.tags"}
LOADER: Final[Loader] = IcebergLoader()
