"""R29, R30: what the Iceberg sink costs, against PyIceberg alone, in a catalog of the same kind."""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from itertools import count
from statistics import median

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.table import Table

from bench.contest import Contest, Turn, Turns
from bench.sinks import fences_of_one
from bench.surroundings import Surroundings
from waybill_shared.contract.manifest.iceberg import IcebergSinkSettings
from waybill_spark.sinks.iceberg.catalogs import open_local
from waybill_spark.sinks.iceberg.sink import IcebergSink
from waybill_spark.sinks.iceberg.tables import IcebergTarget
from waybill_spark.tracking.sink import SinkLife

SCHEMA = pa.schema([("order_id", pa.int64()), ("customer", pa.string()), ("amount", pa.float64())])
COMMITS = 10  # of one turn; their median counts
KEPT = 1_000_000  # rows of the table that is upserted
FILES = 4


def rows_of(numbers: range | list[int]) -> pa.Table:
    customers = [f"customer {number % 1_000}" for number in numbers]
    amounts = [random.random() for _ in numbers]
    columns = {"order_id": [*numbers], "customer": customers, "amount": amounts}
    return pa.table(columns, schema=SCHEMA)


@contextmanager
def against_pyiceberg(around: Surroundings, rows: int, mode: str) -> Iterator[Turns]:
    upsert = mode == "upsert"
    catalog = open_local(around.folder / "lakehouse", "bench")
    keys = ["order_id"] if upsert else []
    settings = IcebergSinkSettings.model_validate(
        {"table": "bench.ours", "mode": mode, "keys": keys}
    )
    target = IcebergTarget(sink="ours", settings=settings, pipeline_uid="bench")
    sink = IcebergSink(
        SinkLife(name="ours", since=1, fence_key="bench"), catalog, target, schema=SCHEMA
    )
    sink.claim()
    _, bare = (_filled(_made(catalog.tables, name), upsert) for name in ("ours", "bare"))
    sink.claim()
    fences, seeds = fences_of_one(), count()

    def batch() -> pa.Table:
        if not upsert:
            return rows_of(range(rows))
        return rows_of(random.Random(next(seeds)).sample(range(KEPT), rows))

    def seconds(write: Callable[[pa.Table], object]) -> Turn:
        def turn() -> float:
            taken = []
            for _ in range(3 if upsert else COMMITS):
                given = batch()
                began = time.perf_counter()
                write(given)
                taken.append(time.perf_counter() - began)
            return median(taken)

        return turn

    def bare_upsert(given: pa.Table) -> None:
        bare.upsert(given, join_cols=["order_id"])

    with closing(sink):
        yield Turns(
            ours=seconds(lambda given: sink.write(given.to_batches(), next(fences))),
            theirs=seconds(bare_upsert if upsert else bare.append),
        )


def _made(catalog: Catalog, name: str) -> Table:
    return catalog.create_table_if_not_exists(f"bench.{name}", schema=SCHEMA)


def _filled(table: Table, wanted: bool) -> Table:
    step = KEPT // FILES
    for number in range(FILES if wanted else 0):
        table.append(rows_of(range(number * step, (number + 1) * step)))
    return table


def _append(key: str, rows: int) -> Contest:
    return Contest(
        key=key,
        what=f"{rows:,} rows appended to an Iceberg table",
        ours="Waybill's sink, with its fence",
        theirs="PyIceberg's append",
        unit="s",
        target=1.2,
        begin=partial(against_pyiceberg, rows=rows, mode="append"),
    )


R29 = _append("R29", 1)
R29K = _append("R29k", 1_000)
R29H = _append("R29h", 100_000)
R30 = Contest(
    key="R30",
    what=f"1,000 rows upserted into an Iceberg table of {KEPT:,}, their keys spread over it",
    ours="Waybill's sink, with its fence",
    theirs="PyIceberg's upsert",
    unit="s",
    target=1.2,
    begin=partial(against_pyiceberg, rows=1_000, mode="upsert"),
)
