"""Columns that a table of Postgres gets, or why it does not: `schemaEvolution: add`."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from threading import Barrier
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from builders import make_fence
from integration.spark.postgres_sinks import (
    LIFE,
    SCHEMA,
    UPSERT,
    opened,
    read,
    rows,
    settings,
    sink_of,
)
from integration.waiting import eventually
from postgres import Database
from waybill_shared.contract.errors import UserError
from waybill_spark.sinks.postgres.connection import connect
from waybill_spark.sinks.postgres.fitting import plan_change
from waybill_spark.sinks.postgres.sink import PostgresSink
from waybill_spark.sinks.postgres.tables import PostgresTarget
from waybill_spark.tracking.sink import SinkUnreachable

ADD: dict[str, Any] = {"schemaEvolution": "add"}
WAIT_S = 120.0
PATIENT = "-c statement_timeout=20s"


def wider(kind: pa.DataType, name: str = "tax") -> pa.Schema:
    return pa.schema([*SCHEMA, (name, kind)])


WIDER = wider(pa.float64())


def orders(database: Database) -> str:
    return f'"{database.schema}"."Orders 1"'


def with_tax(number: int, tax: float) -> Sequence[pa.RecordBatch]:
    table = pa.table({"order_id": [number], "customer": ["ada"], "tax": [tax]}, WIDER)
    return [*table.to_batches()]


def said(database: Database, schema: pa.Schema, **other: Any) -> list[str]:  # noqa: ANN401
    """What a check says of it."""
    target = PostgresTarget(sink=LIFE.name, settings=settings(database, **{**ADD, **other}))
    with closing(connect("warehouse", database.connection())) as session:
        return [*plan_change(session, target, schema).describe()]


def refusal(database: Database, schema: pa.Schema = WIDER, **other: Any) -> str:  # noqa: ANN401
    """Why a check refuses it, with the hint; a start refuses it for the same reason."""
    with pytest.raises(UserError) as raised:
        said(database, schema, **other)
    with pytest.raises(UserError) as also:
        sink_of(database, schema=schema, **{**ADD, **other}).claim()
    assert also.value.problems == raised.value.problems
    return "; ".join(f"{each.message}: {each.hint}" for each in raised.value.problems)


def columns_of(database: Database) -> list[tuple[str, str]]:
    return database.ask(
        "SELECT attname::text, format_type(atttypid, atttypmod) FROM pg_attribute"
        " WHERE attrelid = %s::regclass AND attnum > 2 AND NOT attisdropped ORDER BY attnum",
        orders(database),
    )


@contextmanager
def stranger(database: Database) -> Iterator[psycopg.Connection]:
    """Somebody who is in the middle of a transaction."""
    with closing(psycopg.connect(database.url)) as session:
        yield session


def test_a_column_that_came_is_added_when_the_stage_starts(postgres: Database) -> None:
    opened(postgres).write(rows(1), make_fence(sequence=0))
    assert said(postgres, WIDER) == ["gets a column tax, double precision"]
    assert columns_of(postgres) == [], "a check changes nothing"
    sink = opened(postgres, WIDER, **ADD)
    assert columns_of(postgres) == [("tax", "double precision")]
    sink.write(with_tax(2, 0.5), make_fence(sequence=1))
    assert read(postgres) == [(1, "ada", None), (2, "ada", 0.5)]
    assert said(postgres, WIDER) == []


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (pa.bool_(), "boolean"),
        (pa.int32(), "integer"),
        (pa.decimal128(10, 2), "numeric(10,2)"),
        (pa.timestamp("us", "UTC"), "timestamp with time zone"),
        (pa.list_(pa.int64()), "jsonb"),
        (pa.binary(), "bytea"),
    ],
)
def test_it_has_the_type_that_a_new_table_would_have(
    postgres: Database, kind: pa.DataType, name: str
) -> None:
    opened(postgres)
    column = 'of "all", 1'
    opened(postgres, wider(kind, column), **ADD)
    assert columns_of(postgres) == [(column, name)]


def test_without_it_the_refusal_names_it_and_the_statement(postgres: Database) -> None:
    opened(postgres)
    found = refusal(postgres, schemaEvolution="none")
    assert "it has no column tax: write schemaEvolution: add, or add it: ALTER TABLE" in found
    postgres.ask(found.partition("add it: ")[2])
    opened(postgres, WIDER).write(with_tax(1, 0.5), make_fence(sequence=0))
    assert read(postgres, "tax") == [(0.5,)]


def test_what_may_be_a_new_name_is_said_with_the_statement(postgres: Database) -> None:
    opened(postgres)
    schema = pa.schema([SCHEMA.field("order_id"), ("client", pa.string())])
    (found,) = said(postgres, schema)
    assert found.startswith("gets a column client, text; if it is another under a new name")
    postgres.ask(found.partition("first run ")[2])
    assert said(postgres, schema) == []


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("tax text", {}, "its column tax is text, the query gives double precision: cast it"),
        ('"Tax" float', {}, "it has a column Tax, and the query gives tax: Spark takes them"),
        ("n bigint", {**UPSERT, "keys": ["tax"]}, "it has no column tax, which is a key: no row"),
    ],
)
def test_a_column_that_cannot_be_added_is_refused(
    postgres: Database, before: str, after: dict[str, Any], message: str
) -> None:
    made = f"CREATE TABLE {orders(postgres)} (order_id bigint, customer text, {before})"
    postgres.ask(made)
    assert message in refusal(postgres, **after)
    assert len(columns_of(postgres)) == 1


@pytest.mark.parametrize(
    "statements",
    [
        ["CREATE TABLE {table} ({columns}) PARTITION BY LIST (customer)"],
        ["CREATE TABLE {table} ({columns})", "CREATE TABLE {place}.heir () INHERITS ({table})"],
        ["CREATE TYPE {place}.kind AS ({columns})", "CREATE TABLE {table} OF {place}.kind"],
        [
            "CREATE TABLE {place}.all ({columns}) PARTITION BY LIST (customer)",
            "CREATE TABLE {table} PARTITION OF {place}.all DEFAULT",
        ],
    ],
    ids=["with partitions", "with an heir", "of a type", "a partition"],
)
def test_tables_that_share_their_columns_are_changed_by_hand(
    postgres: Database, statements: list[str]
) -> None:
    place, columns = f'"{postgres.schema}"', "order_id bigint, customer text"
    for each in statements:
        postgres.ask(each.format(table=orders(postgres), place=place, columns=columns))
    found = refusal(postgres)
    assert "it has no column tax, and shares its columns with other tables: add it by" in found


def test_a_view_gets_no_column(postgres: Database) -> None:
    view = f"CREATE VIEW {orders(postgres)} AS SELECT 1::bigint AS order_id, 'ada' AS customer"
    postgres.ask(view)
    assert "it is a view or the like, no table" in refusal(postgres)


def test_names_that_no_column_can_have_are_refused_beforehand(postgres: Database) -> None:
    opened(postgres)
    own = "SELECT attname::text FROM pg_attribute WHERE attrelid = %s::regclass AND attnum < 0"
    for (name,) in postgres.ask(own, orders(postgres)):
        found = refusal(postgres, wider(pa.int64(), name))
        assert f"no column can be called {name}: it is Postgres' own: rename it" in found


def test_a_user_who_does_not_own_the_table_is_told_so(
    postgres: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(postgres)
    role = f"r{postgres.schema}"
    postgres.ask(f"CREATE ROLE {role} LOGIN PASSWORD 'secret'")
    monkeypatch.setenv("WAYBILL_SECRET", "secret")
    try:
        postgres.ask(f"GRANT USAGE, CREATE ON SCHEMA {postgres.schema} TO {role}")
        postgres.ask(f"GRANT ALL ON ALL TABLES IN SCHEMA {postgres.schema} TO {role}")
        sink = sink_of(postgres, schema=WIDER, **ADD)
        sink._connection = postgres.connection(user=role, password={"env": "WAYBILL_SECRET"})
        with pytest.raises(UserError, match="only the owner of the table may add one") as raised:
            sink.claim()
        (problem,) = raised.value.problems
        assert str(problem.hint).startswith(f"as its owner: ALTER TABLE {orders(postgres)} ADD")
        postgres.ask(f"ALTER TABLE {orders(postgres)} OWNER TO {role}")
        sink.claim()
        assert columns_of(postgres) == [("tax", "double precision")]
        sink.close()
    finally:
        postgres.ask(f"DROP OWNED BY {role}")
        postgres.ask(f"DROP ROLE {role}")


def test_of_many_that_add_a_column_at_once_one_adds_it(postgres: Database) -> None:
    opened(postgres)
    together = Barrier(6)

    def begins(number: int) -> PostgresSink:
        life = replace(LIFE, fence_key=f"writer {number}")
        sink = sink_of(postgres, schema=WIDER, life=life, **ADD)
        together.wait(WAIT_S)
        sink.claim()
        sink.last()
        sink.write(with_tax(number, number / 2), make_fence(sequence=0))
        return sink

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(begins, range(6)))
    assert read(postgres, "order_id, tax") == [(number, number / 2) for number in range(6)]


def test_of_two_that_add_it_with_other_types_one_is_refused(postgres: Database) -> None:
    opened(postgres)
    together = Barrier(2)

    def begins(kind: pa.DataType) -> str:
        life = replace(LIFE, fence_key=f"writer {kind}")
        sink = sink_of(postgres, schema=wider(kind), life=life, **ADD)
        together.wait(WAIT_S)
        try:
            sink.claim()
        except UserError as error:
            return str(error)
        return ""

    with ThreadPoolExecutor(2) as pool:
        found = sorted(pool.map(begins, (pa.float64(), pa.bool_())))
    assert found[0] == ""
    assert "its column tax is " in found[1]
    assert len(columns_of(postgres)) == 1


@pytest.mark.parametrize("kind", ["text", "double precision"])
def test_a_stranger_who_adds_it_first_has_the_say(postgres: Database, kind: str) -> None:
    """Between the look at the table and the statement."""
    opened(postgres)
    sink = sink_of(postgres, schema=wider(pa.float64()), **ADD)
    with ThreadPoolExecutor(1) as pool, stranger(postgres) as other:
        other.execute(f"ALTER TABLE {orders(postgres)} ADD COLUMN tax {kind}".encode())
        claim = pool.submit(sink.claim)
        eventually(partial(_waits, postgres), within_s=WAIT_S)
        other.commit()
        if kind == "text":
            with pytest.raises(UserError, match="its column tax is text"):
                claim.result(WAIT_S)
        else:
            claim.result(WAIT_S)
    assert columns_of(postgres) == [("tax", kind)]


def test_a_transaction_that_holds_the_table_costs_only_time(postgres: Database) -> None:
    """And nobody who reads it waits for long."""
    opened(postgres).write(rows(1), make_fence(sequence=0))
    sink = sink_of(postgres, schema=WIDER, **ADD)
    with ThreadPoolExecutor(1) as pool, stranger(postgres) as other:
        other.execute(f"SELECT * FROM {orders(postgres)}".encode())
        claim = pool.submit(sink.claim)
        eventually(partial(_waits, postgres), within_s=WAIT_S)
        with closing(psycopg.connect(postgres.url, options=PATIENT)) as reader:  # behind that one
            reader.execute(f"SELECT * FROM {orders(postgres)}".encode())
        with pytest.raises(SinkUnreachable, match="it gets no tax") as raised:
            claim.result(WAIT_S)
        query = raised.value.hint.partition(": ")[2].partition(";")[0]
        assert postgres.ask(query) == [(other.info.backend_pid,)]
        assert columns_of(postgres) == []
    sink.claim()
    assert columns_of(postgres) == [("tax", "double precision")]


def test_a_sink_that_runs_goes_on_with_what_it_knows(postgres: Database) -> None:
    running = opened(postgres)
    running.write(rows(1), make_fence(sequence=0))
    life = replace(LIFE, fence_key="of another pipeline")
    sink_of(postgres, schema=WIDER, life=life, **ADD).claim()
    running.write(rows(2), make_fence(sequence=1))
    assert read(postgres) == [(1, "ada", None), (2, "ada", None)]


def _waits(database: Database) -> bool:
    waiting = "SELECT pid FROM pg_locks WHERE NOT granted AND relation = %s::regclass"
    return bool(database.ask(waiting, orders(database)))
