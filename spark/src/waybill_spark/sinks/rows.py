"""What sinks are given of a view: columns, which those of one view share."""

from collections.abc import Iterable, Mapping

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from waybill_spark.sinks.contract import SelectedColumn


def column_of(name: str) -> Column:
    quoted = name.replace("`", "``")
    return F.col(f"`{quoted}`")


def all_columns(frame: DataFrame) -> Mapping[str, SelectedColumn]:
    return {name: SelectedColumn(name, column_of(name)) for name in frame.columns}


def select_all(frame: DataFrame, wanted: Iterable[Mapping[str, SelectedColumn]]) -> DataFrame:
    """Select each column that a sink gets once, so that one pass serves all."""
    columns = {selected.name: selected.column for each in wanted for selected in each.values()}
    return frame.select(*(column.alias(name) for name, column in columns.items()))


def select_for(table: pa.Table, wanted: Mapping[str, str]) -> pa.Table:
    """Select and rename columns. `wanted`: names in the table, by those that the sink knows."""
    return table.select(list(wanted.values())).rename_columns(list(wanted))
