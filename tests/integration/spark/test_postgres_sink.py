"""The Postgres sink on a real server: rows and fence in one transaction, nobody writes twice."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
import pytest

from builders import make_fence
from contracts.sink import SinkContract
from integration.spark.postgres_sinks import LIFE, UPSERT, opened, read, rows, sink_of
from postgres import Database
from waybill_shared.process.clock import SystemClock
from waybill_spark.sinks.postgres.sink import PostgresSink
from waybill_spark.tracking.commits import Identity
from waybill_spark.tracking.ledger import Ledger
from waybill_spark.tracking.sink import RowsRefused, Sink, SinkSuperseded

BATCHES, KEYS = 200, 50


DEADLOCKS = "SELECT sum(deadlocks) FROM pg_stat_database"


class TablePlace:
    def __init__(self, database: Database) -> None:
        self._database = database

    def sink(self, since: int = 1) -> Sink:
        life = replace(LIFE, since=since, fence_key=f"{LIFE.fence_key}@{since}")
        return sink_of(self._database, life=life)

    def rows(self, *numbers: int) -> Iterable[pa.RecordBatch]:
        return rows(*numbers)

    def read(self) -> list[int]:
        table = f'{self._database.schema}."Orders 1"'
        present = self._database.ask("SELECT to_regclass(%s) IS NOT NULL", table)
        return [row[0] for row in read(self._database)] if present == [(True,)] else []


class TestPostgresSink(SinkContract):
    @pytest.fixture
    def place(self, postgres: Database) -> TablePlace:
        return TablePlace(postgres)


def test_the_version_is_a_place_in_the_log_that_has_the_batch(postgres: Database) -> None:
    before = postgres.ask("SELECT pg_current_wal_lsn()::text")[0][0]
    written = opened(postgres).write(rows(1), make_fence(sequence=0)).version["postgres_lsn"]
    later = opened(postgres).last()
    assert later is not None
    order = postgres.ask(
        "SELECT %s::pg_lsn < %s::pg_lsn, %s::pg_lsn <= %s::pg_lsn",
        before, written, written, later.version["postgres_lsn"],
    )  # fmt: skip
    assert order == [(True, True)]


def test_every_type_comes_out_as_it_went_in(postgres: Database) -> None:
    schema = pa.schema(
        [
            ("id", pa.int32()),
            ("amount", pa.decimal128(10, 2)),
            ("at", pa.timestamp("us", tz="UTC")),
            ("local", pa.timestamp("us")),
            ("day", pa.date32()),
            ("yes", pa.bool_()),
            ("big", pa.int64()),
            ("small", pa.float32()),
            ("double", pa.float64()),
            ("text", pa.string()),
        ]
    )
    values = [
        (1, Decimal("12.50"), 1_700_000_000_123_456, -1, -719_162, True, 2**63 - 1, 0.1, 1e308,
         'a "quoted", \\N text,\nover lines; ü€😀'),
        (2, Decimal("-99999999.99"), -62_135_596_800_000_000, 0, 0, False, -(2**63), float("nan"),
         float("-inf"), ""),
        (3, None, None, None, None, None, None, None, None, None),
    ]  # fmt: skip
    columns = [pa.array(c, f.type) for c, f in zip(zip(*values, strict=True), schema, strict=True)]
    table = pa.Table.from_arrays(columns, schema=schema)
    opened(postgres, schema).write(table.to_batches(), make_fence(sequence=0))

    found = read(postgres)
    told = [tuple(each.values()) for each in table.to_pylist()]
    assert repr(found[0][7]) == repr(pa.scalar(0.1, pa.float32()).as_py()) or found[0][7] == 0.1
    same = [0, 1, 2, 3, 4, 5, 6, 8, 9]
    assert [[row[k] for k in same] for row in found] == [[row[k] for k in same] for row in told]
    assert str(found[1][7]) == "nan"
    kinds = postgres.ask(
        "SELECT data_type FROM information_schema.columns WHERE table_schema = %s"
        " AND table_name = 'Orders 1' ORDER BY ordinal_position",
        postgres.schema,
    )
    assert [kind for (kind,) in kinds] == [
        "integer", "numeric", "timestamp with time zone", "timestamp without time zone", "date",
        "boolean", "bigint", "real", "double precision", "text",
    ]  # fmt: skip


def test_an_upsert_keeps_the_last_row_of_each_key(postgres: Database) -> None:
    sink = opened(postgres, **UPSERT)
    many = pa.Table.from_batches([*rows(1, 2), *rows(1, customer="bob")]).to_batches()
    sink.write(many, make_fence(sequence=0))
    sink.write(rows(2, 3, customer="cy"), make_fence(sequence=1))
    assert read(postgres) == [(1, "bob"), (2, "cy"), (3, "cy")]


def test_with_an_order_the_greatest_wins_whenever_it_comes(postgres: Database) -> None:
    schema = pa.schema([("order_id", pa.int64()), ("n", pa.int64())])

    def batch(*values: tuple[int, int | None]) -> list[pa.RecordBatch]:
        ids, numbers = zip(*values, strict=True)
        return [*pa.table({"order_id": ids, "n": numbers}, schema=schema).to_batches()]

    sink = opened(postgres, schema, **UPSERT, orderBy="n")
    sink.write(batch((1, 5), (1, 3), (2, None), (2, 1)), make_fence(sequence=0))
    assert read(postgres) == [(1, 5), (2, 1)]
    sink.write(batch((1, 4), (2, 2)), make_fence(sequence=1))
    assert read(postgres) == [(1, 5), (2, 2)]
    sink.write(batch((1, None), (2, None), (3, None)), make_fence(sequence=2))
    assert read(postgres) == [(1, 5), (2, 2), (3, None)], "no value is the smallest"
    sink.write(batch((3, 0)), make_fence(sequence=3))
    assert read(postgres)[2] == (3, 0)


def test_a_row_whose_flag_is_true_deletes_its_key(postgres: Database) -> None:
    schema = pa.schema([("order_id", pa.int64()), ("customer", pa.string()), ("gone", pa.bool_())])

    def batch(*values: tuple[int, bool | None]) -> list[pa.RecordBatch]:
        ids, flags = zip(*values, strict=True)
        told = {"order_id": ids, "customer": ["ada"] * len(ids), "gone": flags}
        return [*pa.table(told, schema=schema).to_batches()]

    sink = opened(postgres, schema, **UPSERT, deleteWhere="gone")
    sink.write(batch((1, False), (2, None), (3, False)), make_fence(sequence=0))
    sink.write(
        batch((1, True), (2, True), (2, False), (3, False), (3, True), (9, True)),
        make_fence(sequence=1),
    )
    assert read(postgres) == [(2, "ada")]  # the flag is no column of the table


def test_with_an_order_only_a_deletion_that_is_no_older_deletes(postgres: Database) -> None:
    schema = pa.schema([("order_id", pa.int64()), ("n", pa.int64()), ("gone", pa.bool_())])

    def batch(*values: tuple[int, int | None, bool]) -> list[pa.RecordBatch]:
        ids, numbers, flags = zip(*values, strict=True)
        told = {"order_id": ids, "n": numbers, "gone": flags}
        return [*pa.table(told, schema=schema).to_batches()]

    sink = opened(postgres, schema, **UPSERT, orderBy="n", deleteWhere="gone")
    sink.write(batch(*((key, 5, False) for key in range(4))), make_fence(sequence=0))
    gone = [(0, 4, True), (1, 5, True), (2, 6, True), (3, None, True)]
    sink.write(batch(*gone), make_fence(sequence=1))
    assert read(postgres) == [(0, 5), (3, 5)]


def test_rows_that_the_table_refuses_leave_nothing_behind(postgres: Database) -> None:
    sink = opened(postgres)
    postgres.ask(f'ALTER TABLE "{postgres.schema}"."Orders 1" ADD CHECK (order_id > 0)')
    assert sink.find_refusal(rows(1)) is None
    assert "violates check constraint" in str(sink.find_refusal(rows(-1)))
    with pytest.raises(RowsRefused, match="violates check constraint"):
        sink.write(rows(1, -1), make_fence(sequence=0))
    assert read(postgres) == []
    sink.write(rows(1), make_fence(sequence=0))
    assert read(postgres) == [(1, "ada")]


def test_a_writer_of_the_table_that_is_not_ours_is_in_nobodys_way(postgres: Database) -> None:
    sink = opened(postgres)
    sink.write(rows(1), make_fence(sequence=0))
    postgres.ask(f"""INSERT INTO "{postgres.schema}"."Orders 1" VALUES (7, 'theirs')""")
    sink.write(rows(2), make_fence(sequence=1))
    assert read(postgres) == [(1, "ada"), (2, "ada"), (7, "theirs")]


def test_a_deletion_shuts_out_a_driver_that_has_written_nothing_yet(postgres: Database) -> None:
    paused = opened(postgres)
    sink = sink_of(postgres, schema=None)
    sink.claim()
    identity = Identity(tenant="default", pipeline_uid="uid", generation=1, epoch=2)
    ledger = Ledger(
        sink, stage="load", inputs=(), identity=identity, emit=lambda commit: None,
        clock=SystemClock(),
    )  # fmt: skip
    ledger.read()
    ledger.close_for_good()
    with pytest.raises(SinkSuperseded):
        paused.write(rows(1), make_fence(sequence=0))
    assert read(postgres) == []


def test_rows_that_a_trigger_leaves_out_are_not_told_as_written(postgres: Database) -> None:
    sink = opened(postgres)
    name = f'"{postgres.schema}"."Orders 1"'
    postgres.ask(
        f"CREATE FUNCTION {postgres.schema}.out() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN IF NEW.order_id = 2 THEN RETURN NULL; END IF; RETURN NEW; END'"
    )
    postgres.ask(
        f"CREATE TRIGGER t BEFORE INSERT ON {name} FOR EACH ROW"
        f" EXECUTE FUNCTION {postgres.schema}.out()"
    )
    with pytest.raises(RowsRefused, match="it took 2 of 3 rows"):
        sink.write(rows(1, 2, 3), make_fence(sequence=0))
    assert read(postgres) == []


def test_two_writers_of_one_table_never_lock_each_other(postgres: Database) -> None:
    """Each has the same keys, in the order of the other turned round; the greatest stays."""
    schema = pa.schema([("a", pa.int64()), ("b", pa.int64()), ("n", pa.int64())])

    def writer(number: int) -> PostgresSink:
        keys = ["a", "b"] if number else ["b", "a"]
        life = replace(LIFE, fence_key=f"writer {number}")
        sink = sink_of(postgres, schema=schema, life=life, mode="upsert", keys=keys, orderBy="n")
        sink.claim()
        sink.last()
        return sink

    def write(number: int, sink: PostgresSink) -> None:
        for batch in range(BATCHES):
            told = {"a": range(KEYS), "b": range(KEYS, 0, -1), "n": [2 * batch + number] * KEYS}
            rows = pa.table({k: [*v] for k, v in told.items()}, schema=schema).to_batches()
            sink.write(rows, make_fence(sequence=batch))
        sink.close()  # so that the server counts what happened to it

    before = postgres.ask(DEADLOCKS)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, range(2), [writer(0), writer(1)]))
    assert read(postgres) == [(key, KEYS - key, 2 * BATCHES - 1) for key in range(KEYS)]
    assert postgres.ask(DEADLOCKS) == before


def test_a_constraint_that_looks_only_at_the_end_is_tried_too(postgres: Database) -> None:
    sink = opened(postgres)
    unique = "UNIQUE (order_id) DEFERRABLE INITIALLY DEFERRED"
    postgres.ask(f'ALTER TABLE "{postgres.schema}"."Orders 1" ADD {unique}')
    assert sink.find_refusal(rows(1)) is None
    assert "violates unique constraint" in str(sink.find_refusal(rows(1, 2, 1)))
    sink.write(rows(1), make_fence(sequence=0))
    assert "violates unique constraint" in str(sink.find_refusal(rows(1)))
    with pytest.raises(RowsRefused, match="violates unique constraint"):
        sink.write(rows(2, 1), make_fence(sequence=1))
