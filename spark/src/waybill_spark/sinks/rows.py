"""What sinks are given of a view: columns, which those of one view share."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from waybill_spark.sinks.contract import Taken
from waybill_spark.tracking.dead_letters.records import Doomed
from waybill_spark.tracking.distributed_rows import Rows, SpreadRows


@dataclass(frozen=True, slots=True)
class BatchRows:
    """The rows of a batch for each sink, by the sink's name.

    Those of a big batch lie with the executors until it is closed.

    `dead`: the records that gave none, for they must go to a dead-letter topic, in their order.
    `dropped`: how many the manifest says to drop, by rule.
    """

    by_sink: Mapping[str, Rows]
    dead: Sequence[Doomed] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)

    @property
    def any_row(self) -> bool:
        return any(rows.num_rows for rows in self.by_sink.values())

    def close(self) -> None:
        for rows in self.by_sink.values():
            if isinstance(rows, SpreadRows):
                rows.forget()


def column_of(name: str) -> Column:
    quoted = name.replace("`", "``")
    return F.col(f"`{quoted}`")


def all_columns(frame: DataFrame) -> Mapping[str, Taken]:
    return {name: Taken(name, column_of(name)) for name in frame.columns}


def select_all(frame: DataFrame, wanted: Iterable[Mapping[str, Taken]]) -> DataFrame:
    """Select each column that a sink gets once, so that one pass serves all."""
    columns = {taken.name: taken.column for each in wanted for taken in each.values()}
    return frame.select(*(column.alias(name) for name, column in columns.items()))


def select_for(table: pa.Table, wanted: Mapping[str, str]) -> pa.Table:
    """Select and rename columns. `wanted`: names in the table, by those that the sink knows."""
    return table.select(list(wanted.values())).rename_columns(list(wanted))
