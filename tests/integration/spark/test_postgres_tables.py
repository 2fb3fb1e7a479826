"""Tables of Postgres: which are taken, which are refused and why, and how one is made."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from builders import make_fence
from integration.spark.postgres_sinks import LIFE, UPSERT, opened, read, rows, sink_of
from postgres import Database
from waybill_shared.contract.errors import UserError
from waybill_spark.sinks.postgres.sink import PostgresSink
from waybill_spark.tracking.stopping import StageStopped

MADE = 'CREATE TABLE "{schema}"."Orders 1" ({columns})'


@pytest.mark.parametrize(
    ("columns", "other", "message", "hint"),
    [
        ("order_id bigint", {}, "it has no column customer", 'EXISTS "customer" text'),
        (
            "order_id integer, customer text",
            {},
            "its column order_id is integer, the query gives bigint",
            'ALTER COLUMN "order_id" TYPE bigint',
        ),
        (
            "order_id bigint, customer text, site text NOT NULL",
            {},
            "its column site needs a value, and the query gives none",
            'ALTER COLUMN "site" DROP NOT NULL',
        ),
        (
            "order_id bigint, customer text",
            UPSERT,
            "it has no unique index over order_id",
            '"Orders 1" ("order_id")',
        ),
        (
            "order_id bigint, customer text GENERATED ALWAYS AS ('x') STORED",
            {},
            "its column customer is computed",
            "leave it out of the query",
        ),
        (None, {"create": False}, "there is no such table", "CREATE TABLE"),
    ],
)
def test_a_table_that_does_not_fit_is_refused_with_what_would_mend_it(
    postgres: Database, columns: str | None, other: dict[str, Any], message: str, hint: str
) -> None:
    if columns is not None:
        postgres.ask(MADE.format(schema=postgres.schema, columns=columns))
    with pytest.raises(UserError) as raised:
        sink_of(postgres, **other).claim()
    (problem,) = raised.value.problems
    assert message in problem.message
    assert hint in str(problem.hint)


@pytest.mark.parametrize(
    ("table", "message", "hint"),
    [
        ("nowhere.orders", "there is no schema nowhere", 'CREATE SCHEMA "nowhere"'),
        ("Public.orders", "there is no schema Public", "with capitals"),
        ("warehouse.public.orders", "there is no schema warehouse", "the first dot ends"),
        ("pg_catalog.orders", "schema pg_catalog is Postgres' own", "take another"),
        ("pg_catalog.pg_authid", "schema pg_catalog is Postgres' own", "take another"),
        ("information_schema.sql_parts", "is Postgres' own", "take another"),
        ("public.waybill_fences", "it is Waybill's own", "take another name"),
        ("public.waybill_load_1", "it is Waybill's own", "take another name"),
        ("public.iceberg_tables", "it is Waybill's own", "take another name"),
    ],
)
def test_a_place_where_no_rows_can_go_is_refused(
    postgres: Database, table: str, message: str, hint: str
) -> None:
    with pytest.raises(UserError) as raised:
        sink_of(postgres, table=table).claim()
    (problem,) = raised.value.problems
    assert message in problem.message
    assert hint in str(problem.hint)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("ALTER TABLE {} SET UNLOGGED", "it is UNLOGGED"),
        ("CREATE RULE none AS ON INSERT TO {} DO INSTEAD NOTHING", "rules or policies decide"),
    ],
)
def test_a_table_that_may_lose_rows_by_itself_is_refused(
    postgres: Database, change: str, message: str
) -> None:
    opened(postgres)
    postgres.ask(change.format(f'"{postgres.schema}"."Orders 1"'))
    with pytest.raises(UserError, match=message):
        opened(postgres)


def test_a_key_that_may_be_null_is_refused(postgres: Database) -> None:
    """Null is no value that a second row could have too."""
    columns = "order_id bigint UNIQUE, customer text"
    postgres.ask(MADE.format(schema=postgres.schema, columns=columns))
    with pytest.raises(UserError, match="its key order_id may be null") as raised:
        opened(postgres, **UPSERT)
    assert "SET NOT NULL" in str(raised.value.problems[0].hint)


@pytest.mark.parametrize(
    "change",
    ["SET UNLOGGED", "DROP CONSTRAINT waybill_fences_pkey"],
)
def test_a_table_of_fences_that_somebody_has_changed_is_refused(
    postgres: Database, change: str
) -> None:
    opened(postgres)
    postgres.ask(f"ALTER TABLE {postgres.schema}.waybill_fences {change}")
    with pytest.raises(UserError, match="somebody has changed the table waybill_fences"):
        opened(postgres)


def test_two_that_begin_at_once_make_one_table(postgres: Database) -> None:
    sinks = [
        sink_of(postgres, life=replace(LIFE, fence_key=f"writer {number}")) for number in range(6)
    ]
    with ThreadPoolExecutor(len(sinks)) as pool:
        list(pool.map(PostgresSink.claim, sinks))


def test_wider_columns_take_the_rows(postgres: Database) -> None:
    columns = "customer varchar(40), order_id numeric, at timestamptz DEFAULT now()"
    postgres.ask(MADE.format(schema=postgres.schema, columns=columns))
    opened(postgres).write(rows(1), make_fence(sequence=0))
    assert read(postgres, "order_id, customer") == [(1, "ada")]


def test_a_user_who_may_not_write_is_told_which_right_is_missing(postgres: Database) -> None:
    opened(postgres)
    role = f"r{postgres.schema}"
    postgres.ask(f"CREATE ROLE {role} LOGIN PASSWORD 'secret'")
    postgres.ask(f"GRANT USAGE, CREATE ON SCHEMA {postgres.schema} TO {role}")
    fences = f"{postgres.schema}.waybill_fences"
    missing: list[tuple[str, str]] = []
    try:
        sink = sink_of(postgres)
        sink._connection = postgres.connection(user=role, password={"env": "WAYBILL_SECRET"})
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("WAYBILL_SECRET", "secret")
            for granted in ("SELECT", "INSERT, UPDATE"):
                postgres.ask(f"GRANT {granted} ON {fences} TO {role}")
                with pytest.raises(UserError) as raised:
                    sink.claim()
                (problem,) = raised.value.problems
                missing.append((problem.message, str(problem.hint)))
    finally:
        postgres.ask(f"DROP OWNED BY {role}")
        postgres.ask(f"DROP ROLE {role}")
    (in_fences, grant_fences), (in_table, grant_table) = missing
    assert f"may not keep fences in schema {postgres.schema}: no INSERT, UPDATE" in in_fences
    assert f'waybill_fences" TO {role}' in grant_fences
    assert "its user may not INSERT" in in_table
    assert f'GRANT INSERT ON "{postgres.schema}"."Orders 1" TO {role}' in grant_table


def test_a_table_that_was_dropped_is_not_made_again_in_silence(postgres: Database) -> None:
    opened(postgres).write(rows(1), make_fence(sequence=0))
    postgres.ask(f'DROP TABLE "{postgres.schema}"."Orders 1"')
    with pytest.raises(StageStopped, match="was dropped, and its fence says that it may have rows"):
        opened(postgres)
    postgres.ask(MADE.format(schema=postgres.schema, columns="order_id bigint, customer text"))
    opened(postgres).write(rows(2), make_fence(sequence=1))
    assert read(postgres) == [(2, "ada")]
