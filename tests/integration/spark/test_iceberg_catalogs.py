"""Catalogs and stores that connections name, each held to the contract of sinks; and what is told
of those that are away, or let nobody in."""

import os
import socket
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog

from builders import make_fence
from contracts.sink import SinkContract
from integration.spark.catalog_servers import BEARER, Opened, Told
from integration.spark.iceberg_sinks import (
    NAME,
    SCHEMA,
    TablePlace,
    as_rows,
    as_table,
    loaded,
    numbers_in,
    opened,
    target,
)
from integration.spark.rest_catalog import TOKEN, RestServer
from integration.spark.table_ages import HOUR_MS, Hand
from waybill_shared.contract.errors import UserError
from waybill_shared.process.clock import SystemClock
from waybill_spark.sinks.iceberg.ages import MaintenanceRefused
from waybill_spark.sinks.iceberg.catalogs import OpenCatalog
from waybill_spark.sinks.iceberg.maintenance import do_all
from waybill_spark.tracking.sink import SinkSuperseded, SinkUnreachable

UPSERT = {
    "mode": "upsert",
    "keys": ["order_id"],
    "partitionBy": [{"column": "order_id", "transform": "bucket[3]"}],
}


@pytest.fixture(params=["sql", "rest", "glue", "hive"])
def catalog(request: pytest.FixtureRequest, told: Told, open_told: Opened) -> Iterator[OpenCatalog]:
    if request.param == "hive":
        told["hive"] = {**request.getfixturevalue("hive"), "hiveVersion": 2}
    opened = open_told(told, request.param)
    yield opened
    for namespace in opened.tables.list_namespaces() if request.param in ("glue", "hive") else ():
        for table in opened.tables.list_tables(namespace):
            opened.tables.drop_table(table)


class TestEachCatalog(SinkContract):
    @pytest.fixture
    def place(self, catalog: OpenCatalog) -> TablePlace:
        return TablePlace(catalog, UPSERT)


def test_a_metastore_of_hive_2_that_is_not_named_so_is_told(
    told: Told, open_told: Opened, hive: dict[str, Any]
) -> None:
    told["hive"] = hive
    schema = pa.schema([*SCHEMA, ("at", pa.timestamp("us", tz="UTC"))])
    catalog, rows = open_told(told, "hive"), pa.table({"order_id": [1]}).to_batches()
    with pytest.raises(UserError) as refused:
        opened(catalog, target(), schema).write(rows, make_fence(sequence=0))
    assert "write hiveVersion: 2 into the connection, and drop" in refused.value.problems[0].hint
    catalog.tables.drop_table(NAME)
    told["hive"] = {**hive, "hiveVersion": 2}
    catalog = open_told(told, "hive")
    opened(catalog, target(), schema).write(rows, make_fence(sequence=0))
    assert numbers_in(catalog) == [1]
    catalog.tables.drop_table(NAME)


def test_a_stranger_and_a_wider_table(catalog: OpenCatalog) -> None:
    opened(catalog).write(as_rows(1), make_fence(sequence=0))
    wider = pa.schema([*SCHEMA, ("tax", pa.float64())])
    sink = opened(catalog, target(schemaEvolution="add"), wider)
    loaded(catalog).append(as_table(7))
    rows = as_table(2).append_column("tax", pa.array([0.5])).to_batches()
    written = sink.write(rows, make_fence(sequence=1))
    assert numbers_in(catalog, int(written.version["iceberg_snapshot_id"])) == [1, 2, 7]


def test_a_batch_without_rows_makes_a_snapshot_only_where_that_alone_shuts_others_out(
    catalog: OpenCatalog,
) -> None:
    sink = opened(catalog)
    sink.write(as_rows(1), make_fence(sequence=0))
    paused = opened(catalog)
    sink.write([], make_fence(sequence=1))
    snapshots = len(loaded(catalog).snapshots())
    assert snapshots == (2 if isinstance(catalog.tables, RestCatalog) else 1)
    with pytest.raises(SinkSuperseded):
        paused.write(as_rows(9), make_fence(sequence=1))
    assert numbers_in(catalog) == [1]


def test_tables_in_any_store_are_kept_in_order_by_its_clock(catalog: OpenCatalog) -> None:
    sink = opened(catalog)
    for sequence in range(3):
        sink.write(as_rows(sequence), make_fence(sequence=sequence))
    wanted = target(maintenance={"expireSnapshots": {"olderThan": "1 minute"}})
    tasks = wanted.settings.maintenance.tasks
    done = do_all(loaded(catalog), tasks, SystemClock(), dry_run=False)
    assert done == {"expireSnapshots": {"snapshots": 0}}
    with pytest.raises(MaintenanceRefused, match="60 minutes ahead"):
        do_all(loaded(catalog), tasks, Hand(HOUR_MS), dry_run=False)


def test_a_catalog_of_that_name_takes_the_place_of_the_local_one(
    told: Told, open_told: Opened
) -> None:
    catalog = open_told({**told, "lakehouse": told["rest"]}, "lakehouse")
    opened(catalog).write(as_rows(1), make_fence(sequence=0))
    assert numbers_in(open_told(told, "rest")) == [1]


def test_an_answer_that_is_lost_is_no_batch_that_is_lost_or_doubled(
    told: Told, open_told: Opened, rest: RestServer
) -> None:
    catalog = open_told(told, "rest")
    sink = opened(catalog)
    sink.write(as_rows(1), make_fence(sequence=0))
    rest.trouble = "lose_the_answer"
    with pytest.raises(SinkUnreachable, match="cannot be reached"):
        sink.write(as_rows(2), make_fence(sequence=1))
    last = opened(catalog).last()
    assert last is not None
    assert last.fence == make_fence(sequence=1)
    assert numbers_in(catalog, int(last.version["iceberg_snapshot_id"])) == [1, 2]


def test_a_commit_that_was_taken_and_denied_is_one(
    told: Told, open_told: Opened, rest: RestServer
) -> None:
    """As by a proxy that asks again when the answer is late: PyIceberg takes the files away."""
    catalog = open_told(told, "rest")
    sink = opened(catalog)
    sink.write(as_rows(1), make_fence(sequence=0))
    rest.trouble = "deny_what_is_done"
    written = sink.write(as_rows(2), make_fence(sequence=1))
    assert numbers_in(catalog) == [1, 2]
    assert numbers_in(catalog, int(written.version["iceberg_snapshot_id"])) == [1, 2]
    assert len(rest.commits) == 2


def test_who_was_overtaken_while_its_commit_was_denied_commits_no_more(
    told: Told, open_told: Opened, rest: RestServer
) -> None:
    catalog = open_told(told, "rest")
    sink = opened(catalog)
    sink.write(as_rows(1), make_fence(sequence=0))

    def overtake() -> None:
        other = opened(OpenCatalog(rest.catalog, "the other driver's"))
        other.write(as_rows(3), make_fence(sequence=2))

    rest.trouble, rest.meanwhile = "deny_what_is_done", overtake
    for again in (1, 2):
        with pytest.raises(SinkSuperseded):
            sink.write(as_rows(2), make_fence(sequence=again))
    assert numbers_in(catalog) == [1, 2, 3]


def test_a_server_that_is_not_there_now_is_waited_for(
    told: Told, open_told: Opened, rest: RestServer
) -> None:
    sink = opened(open_told(told, "rest"))
    rest.trouble = "unavailable"
    with pytest.raises(SinkUnreachable) as raised:
        sink.write(as_rows(1), make_fence(sequence=0))
    assert rest.uri in raised.value.hint
    sink.claim()
    sink.write(as_rows(1), make_fence(sequence=0))


@pytest.mark.parametrize(
    ("name", "of", "wrong"),
    [
        ("sql", "objects", {"secretKey": {"env": "WAYBILL_TEST_WRONG"}}),
        ("sql", "base", {"password": {"env": "WAYBILL_TEST_WRONG"}}),
        ("rest", "rest", {"token": {"env": "WAYBILL_TEST_WRONG"}}),
        ("glue", "objects", {"secretKey": {"env": "WAYBILL_TEST_WRONG"}}),
    ],
)
def test_who_is_not_let_in_must_mend_the_file(
    told: Told, open_told: Opened, name: str, of: str, wrong: dict[str, Any]
) -> None:
    os.environ["WAYBILL_TEST_WRONG"] = "guessed"
    told = {**told, of: {**told[of], **wrong}}
    with pytest.raises(UserError) as refused:
        opened(open_told(told, name)).write(as_rows(1), make_fence(sequence=0))
    (problem,) = refused.value.problems
    assert "guessed" not in problem.message
    assert "mend the connection's file" in problem.hint


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"catalog": "rest"}, "needs uri"),
        ({"catalog": "sql", "database": "base"}, "needs a warehouse"),
        (
            {"catalog": "sql", "uri": "http://h", "database": "b"},
            "uri is for rest and hive and glue",
        ),
        ({"catalog": "rest", "uri": "h:80"}, "uri: write https://HOST:PORT"),
        ({"catalog": "rest", "uri": "http://me:secret@h"}, "an address with a password in it"),
        ({"catalog": "sql", "database": "b", "warehouse": "lake"}, "write s3://BUCKET/PATH"),
    ],
)
def test_a_connection_that_says_too_little_or_too_much(
    told: dict[str, Any], said: str, open_told: Opened
) -> None:
    with pytest.raises(UserError, match=said) as refused:
        open_told({"lake": {"kind": "iceberg", **told}}, "lake")
    assert "secret@" not in str(refused.value)


def test_a_catalog_that_stands_still_is_one_that_is_away(
    told: Told, open_told: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("waybill_spark.sinks.iceberg.rest.SILENCE_S", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as server:
        uri = f"http://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(SinkUnreachable, match="timed out"):
            open_told({**told, "rest": {**told["rest"], "uri": uri}}, "rest")


def test_what_is_no_catalog_must_be_mended_and_its_answer_is_not_told(
    told: Told, open_told: Opened, rest: RestServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = {"page": "hidden"}
    monkeypatch.setattr(rest, "answer", lambda *_: (200, page))
    with pytest.raises(UserError, match="cannot be read") as refused:
        opened(open_told(told, "rest"))
    assert "hidden" not in str(refused.value)
    assert refused.value.__cause__ is None


def test_a_secret_with_a_line_end_in_it_is_refused_without_it(
    told: Told, open_told: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(BEARER, "guess\nme")
    with pytest.raises(UserError, match="it has a line end or the like in it") as refused:
        open_told(told, "rest")
    assert "guess" not in str(refused.value)
    monkeypatch.setenv(BEARER, f"{TOKEN}\n")
    open_told(told, "rest")
