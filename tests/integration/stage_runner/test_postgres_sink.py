"""The Postgres sink on a real server: rows and fence in one transaction, nobody writes twice."""

import socket
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from select import select
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from psycopg import errors

from builders import make_fence
from contracts.sink import SinkContract
from integration.switches import Switch, cut, start
from postgres import Database
from waybill_shared.contract.errors import UserError
from waybill_shared.contract.manifest.sinks import PostgresSinkSettings
from waybill_shared.process.clock import SystemClock
from waybill_spark.commits import Identity
from waybill_spark.ledger import Ledger
from waybill_spark.sinks.contract import (
    RowsRefused,
    Sink,
    SinkLife,
    SinkSuperseded,
    SinkUnreachable,
)
from waybill_spark.sinks.postgres.connection import meaning
from waybill_spark.sinks.postgres.sink import PostgresSink
from waybill_spark.sinks.postgres.tables import PostgresTarget
from waybill_spark.stopping import StageStopped

LIFE = SinkLife(name="warehouse", since=1, fence_key="here/waybill/default/uid/load/warehouse@1")
SCHEMA = pa.schema([("order_id", pa.int64()), ("customer", pa.string())])
BATCHES, KEYS = 200, 50
DEADLOCKS = "SELECT sum(deadlocks) FROM pg_stat_database"
UPSERT: dict[str, Any] = {"mode": "upsert", "keys": ["order_id"]}


def settings(database: Database, **other: Any) -> PostgresSinkSettings:  # noqa: ANN401
    told = {"connection": "warehouse", "table": f"{database.schema}.Orders 1", **other}
    return PostgresSinkSettings.model_validate(told)


def sink_of(
    database: Database,
    *,
    schema: pa.Schema | None = SCHEMA,
    life: SinkLife = LIFE,
    **other: Any,  # noqa: ANN401 - as the manifest has it
) -> PostgresSink:
    target = PostgresTarget(sink=life.name, settings=settings(database, **other))
    sink = PostgresSink(life, target, database.connection(), schema=schema)
    database.opened.callback(sink.close)
    return sink


def opened(database: Database, schema: pa.Schema = SCHEMA, **other: Any) -> PostgresSink:  # noqa: ANN401
    sink = sink_of(database, schema=schema, **other)
    sink.claim()
    sink.last()
    return sink


def rows(*numbers: int, customer: str = "ada") -> list[pa.RecordBatch]:
    table = pa.table(
        {"order_id": list(numbers), "customer": [customer] * len(numbers)}, schema=SCHEMA
    )
    return [*table.to_batches()]


def read(database: Database, columns: str = "*") -> list[tuple[Any, ...]]:
    return database.ask(f'SELECT {columns} FROM "{database.schema}"."Orders 1" ORDER BY 1')


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
    assert sink.refused(rows(1)) is None
    assert "violates check constraint" in str(sink.refused(rows(-1)))
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


def test_a_fence_that_somebody_removed_ends_the_writer(postgres: Database) -> None:
    sink = opened(postgres)
    sink.write(rows(1), make_fence(sequence=0))
    postgres.ask(f'DELETE FROM "{postgres.schema}".waybill_fences')
    with pytest.raises(SinkSuperseded):
        sink.write(rows(2), make_fence(sequence=1))
    assert read(postgres) == [(1, "ada")]


def test_a_session_that_the_server_ends_is_the_worlds_fault(postgres: Database) -> None:
    sink = opened(postgres)
    ended = (
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
        " WHERE application_name = 'waybill'"
    )
    assert postgres.ask(ended) != [(0,)]
    with pytest.raises(SinkUnreachable):
        sink.write(rows(1), make_fence(sequence=0))
    sink.claim()
    assert sink.last() is None
    sink.write(rows(1), make_fence(sequence=0))
    assert read(postgres) == [(1, "ada")]


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
    ledger.shut()
    with pytest.raises(SinkSuperseded):
        paused.write(rows(1), make_fence(sequence=0))
    assert read(postgres) == []


MADE = 'CREATE TABLE "{schema}"."Orders 1" ({columns})'


@pytest.mark.parametrize(
    ("columns", "other", "message", "hint"),
    [
        ("order_id bigint", {}, "it has no column customer", 'ADD COLUMN "customer" text'),
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
        ("public.waybill_fences", "it is Waybill's own", "take another name"),
    ],
)
def test_a_place_where_no_table_can_be_made_is_refused(
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


def test_a_spoiled_fence_is_named(postgres: Database) -> None:
    opened(postgres).write(rows(1), make_fence(sequence=0))
    postgres.ask(f"UPDATE {postgres.schema}.waybill_fences SET body = '{{}}'")
    with pytest.raises(UserError, match="is spoiled: somebody has changed it"):
        opened(postgres)


def test_a_writer_from_before_a_restore_is_refused(postgres: Database) -> None:
    """The number of its batch is the same again; the claim is not."""
    paused = opened(postgres)
    first = make_fence(sequence=0)
    paused.write(rows(1), first)
    postgres.ask(f"DELETE FROM {postgres.schema}.waybill_fences")
    opened(postgres).write(rows(1), replace(first, epoch=first.epoch + 1))
    with pytest.raises(SinkSuperseded):
        paused.write(rows(2), make_fence(sequence=1))


def test_two_that_begin_at_once_make_one_table(postgres: Database) -> None:
    sinks = [
        sink_of(postgres, life=replace(LIFE, fence_key=f"writer {number}")) for number in range(6)
    ]
    with ThreadPoolExecutor(len(sinks)) as pool:
        list(pool.map(PostgresSink.claim, sinks))


def test_a_lock_that_does_not_come_in_time_is_waited_for_again(postgres: Database) -> None:
    sink = opened(postgres)
    assert sink._session is not None
    sink._session.execute("SET lock_timeout = '100ms'")
    with psycopg.connect(postgres.url) as other:
        other.execute(f'LOCK TABLE "{postgres.schema}"."Orders 1"'.encode())
        with pytest.raises(SinkUnreachable, match="lock timeout"):
            sink.write(rows(1), make_fence(sequence=0))


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


def test_a_wrong_password_is_the_users_to_mend_and_is_not_told(postgres: Database) -> None:
    sink = sink_of(postgres)
    sink._connection = postgres.connection(password={"env": "WAYBILL_SECRET"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WAYBILL_SECRET", "not-the-one")
        with pytest.raises(UserError, match="password authentication failed") as raised:
            sink.claim()
    assert "not-the-one" not in str(raised.value)


def test_a_server_that_is_down_is_tried_again(postgres: Database) -> None:
    sink = sink_of(postgres)
    sink._connection = postgres.connection(port=1)
    with pytest.raises(SinkUnreachable, match="cannot be reached") as raised:
        sink.claim()
    assert "see that Postgres answers at" in raised.value.hint


def test_a_server_without_room_is_tried_again(postgres: Database) -> None:
    sink = opened(postgres, **UPSERT)
    assert sink._session is not None
    sink._session.execute("SET work_mem = '64kB'")
    sink._session.execute("SET temp_file_limit = '64kB'")
    with pytest.raises(SinkUnreachable, match="temporary file size exceeds"):
        sink.write(rows(*range(50_000)), make_fence(sequence=0))
    assert read(postgres) == []


@pytest.mark.parametrize(
    ("error", "retry_after_s"),
    [(errors.DiskFull("no space"), 30.0), (errors.AdminShutdown("ends"), 0.0)],
)
def test_what_the_server_lacks_is_waited_for(error: psycopg.Error, retry_after_s: float) -> None:
    told = meaning(error, "sink warehouse: table public.orders", "db:5432/shop")
    assert isinstance(told, SinkUnreachable)
    assert told.retry_after_s == retry_after_s
    assert "see that Postgres at db:5432/shop answers and may be written to" in told.hint


def test_a_table_that_was_dropped_is_not_made_again_in_silence(postgres: Database) -> None:
    opened(postgres).write(rows(1), make_fence(sequence=0))
    postgres.ask(f'DROP TABLE "{postgres.schema}"."Orders 1"')
    with pytest.raises(StageStopped, match="is gone, and its fence says that it may have rows"):
        opened(postgres)
    postgres.ask(MADE.format(schema=postgres.schema, columns="order_id bigint, customer text"))
    opened(postgres).write(rows(2), make_fence(sequence=1))
    assert read(postgres) == [(2, "ada")]


class CutRoad(Switch):
    """Cuts the connection on which `words` are said to the server; before that, or just after."""

    def __init__(self, target: int, words: bytes, *, arrives: bool) -> None:
        super().__init__(target)
        self._words = words
        self._arrives = arrives
        self._last_words, self._done = threading.Event(), threading.Event()
        self.armed = False

    def forward(self, client: socket.socket, server: socket.socket) -> None:
        start(self._ask, client, server)
        start(self._answer, server, client)

    def _ask(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while piece := client.recv(65_536):
                if self.armed and self._words in piece:
                    if self._arrives:
                        self._last_words.set()
                        server.sendall(piece)
                        self._done.wait(10.0)
                    break
                server.sendall(piece)
        cut(client)
        cut(server)

    def _answer(self, server: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while select([server], [], [], 10.0)[0] and (piece := server.recv(65_536)):
                if self._last_words.is_set():
                    break  # it is done, and the client never hears of it
                client.sendall(piece)
        self._done.set()


@pytest.mark.parametrize(
    ("words", "arrives", "done"),
    [
        (b"BEGIN", False, False),
        (b"COPY", False, False),
        (b"INSERT INTO", True, False),
        (b"COMMIT", False, False),
        (b"COMMIT", True, True),
    ],
)
def test_after_a_connection_is_cut_the_fence_decides(
    postgres: Database, words: bytes, arrives: bool, done: bool
) -> None:
    direct = postgres.connection()
    first = opened(postgres)
    first.write(rows(1), make_fence(sequence=0))
    with CutRoad(direct.port, words, arrives=arrives) as road:
        first._connection = direct.model_copy(update={"port": road.port, "sslmode": "disable"})
        first.claim()
        first.last()
        road.armed = True
        with pytest.raises(SinkUnreachable):
            first.write(rows(2), make_fence(sequence=1))
    after = opened(postgres)
    last = after.last()
    assert last is not None
    assert last.fence.sequence == int(done)
    if not done:
        after.write(rows(2), make_fence(sequence=1))
    assert read(postgres) == [(1, "ada"), (2, "ada")]


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
