"""A pipeline whose Postgres fails: what is told, and that every row is there once in the end."""

import signal
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil
import psycopg
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from e2e.ending import stop_others
from e2e.every_sink import WAIT_S, EverySink
from e2e.waiting import eventually
from postgres import Database
from waybill import Client, PipelineFailed
from waybill.errors import ProblemError
from waybill.models import Fault
from waybill.outcomes import SinkProgress
from waybill_local import postgres
from waybill_local.stack import StackState, read_state
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.process.failpoints import REACHED

NEWEST = """
version: 1
name: {name}
inputs:
  - name: orders
    kafka: {{topic: {name}.in, partitions: 1}}
    schema: "order_id BIGINT, n BIGINT"
stages:
  - name: load
    inputs: [orders]
    trigger: {{processingTime: 100 milliseconds}}
    steps: [{{name: kept, sql: "SELECT order_id, n{more} FROM orders WHERE n % 7 > 0"}}]
    sinks:
      - name: newest
        postgres:
          connection: warehouse
          table: public.{name}
          mode: upsert
          keys: [order_id]
          schemaEvolution: add
"""
REFUSED = """
version: 1
name: refused
inputs:
  - {{name: orders, kafka: {{topic: refused.in}}, schema: "order_id BIGINT, customer STRING"}}
stages:
  - name: load
    inputs: [orders]
    sinks:
      - name: people
        postgres: {postgres}
"""


@pytest.fixture(scope="module")
def pipeline(
    client: Client, stack: StackState, kafka: KafkaAdmin, catalog: SqlCatalog
) -> Iterator[EverySink]:
    made = EverySink(client, stack, kafka, catalog)
    yield made
    client.delete(made.name)


def refused(client: Client, manifest: str) -> Sequence[Fault]:
    """Why it is refused, whether that is known at once or a moment later."""
    try:
        done = client.operation(client.apply(manifest).id, wait_s=WAIT_S)
    except ProblemError as error:
        return error.errors
    assert done.state == "failed"
    return done.errors


def server(stack: StackState) -> psutil.Process:
    state = read_state(stack.folder)
    assert state is not None
    (process,) = (each for each in state.processes if each.name == postgres.NAME)
    return psutil.Process(process.pid)


def answers(stack: StackState) -> bool:
    try:
        Database.of(stack).ask("SELECT 1")
    except psycopg.OperationalError:
        return False
    return True


@contextmanager
def stood_still(stack: StackState) -> Iterator[None]:
    """The server and all its sessions."""
    processes = [server(stack), *server(stack).children(recursive=True)]
    for process in processes:
        process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            process.send_signal(signal.SIGCONT)


def test_a_server_that_is_killed_in_a_batch_costs_only_time(
    pipeline: EverySink, stack: StackState, failpoints: Path
) -> None:
    point = failpoints / f"{pipeline.uid}.postgres.after_copy"
    point.touch()
    token = pipeline.send(5)
    reached = point.with_name(point.name + REACHED)
    eventually(reached.exists, within_s=WAIT_S)
    server(stack).send_signal(signal.SIGKILL)
    reached.unlink()
    eventually(lambda: answers(stack), within_s=WAIT_S)  # a session may end its work without it
    pipeline.assert_once(token, with_lsn=False)
    pipeline.assert_once(pipeline.send(1))  # whoever still had a session to the old one has not now


def sinks_of(client: Client, token: str) -> dict[str, SinkProgress]:
    (stage,) = client.outcome(token).stages
    return {sink.name: sink for sink in stage.sinks}


def test_a_server_that_stands_still_is_told_and_keeps_no_other_sink_waiting(
    pipeline: EverySink, client: Client, stack: StackState, failpoints: Path
) -> None:
    client.wait_pipeline(pipeline.name, timeout_s=WAIT_S)
    point = failpoints / f"{pipeline.uid}.postgres.before_load"
    point.touch()
    token = pipeline.send(4)
    reached = point.with_name(point.name + REACHED)
    eventually(reached.exists, within_s=WAIT_S)
    with stood_still(stack):
        reached.unlink()
        eventually(
            lambda: sinks_of(client, token)["postgres"].blocked_by == "batch_running",
            within_s=WAIT_S,
        )
        found = {name: sink.state for name, sink in sinks_of(client, token).items()}
        assert found == {"kafka": "committed", "iceberg": "committed", "postgres": "waiting"}
    pipeline.assert_once(token)


def test_a_server_that_is_away_is_told_in_its_own_words(
    pipeline: EverySink, client: Client, stack: StackState
) -> None:
    client.wait_pipeline(pipeline.name, timeout_s=WAIT_S)
    Database.of(stack).ask("ALTER SYSTEM SET default_transaction_read_only = on")
    Database.of(stack).ask("SELECT pg_reload_conf()")
    try:
        token = pipeline.send(4)
        eventually(
            lambda: sinks_of(client, token)["postgres"].blocked_by == "sink_retrying",
            within_s=WAIT_S,
        )
        found = sinks_of(client, token)
        assert "read-only transaction" in str(found["postgres"].message)
        assert [found[name].state for name in ("kafka", "iceberg")] == ["committed"] * 2
        (stage,) = client.pipeline(pipeline.name).stages
        assert [sink.blocked_by for sink in stage.sinks] == [None, None, "sink_retrying"]
    finally:
        Database.of(stack).ask("ALTER SYSTEM RESET default_transaction_read_only")
        Database.of(stack).ask("SELECT pg_reload_conf()")
    pipeline.assert_once(token)


def test_a_table_that_is_dropped_is_named_and_the_other_sinks_are_not_written_again(
    pipeline: EverySink, client: Client, stack: StackState
) -> None:
    client.wait_pipeline(pipeline.name, timeout_s=WAIT_S)
    database, table = Database.of(stack), pipeline.postgres_table
    database.ask(f"ALTER TABLE {table} RENAME TO dropped")
    token = pipeline.send(3)
    with pytest.raises(PipelineFailed) as failed:
        client.wait_pipeline(pipeline.name, phase="Stopped", timeout_s=WAIT_S)
    error = failed.value.pipeline.error
    assert error is not None
    assert "sink postgres" in error.message
    assert error.domain == "user"
    (stage,) = client.outcome(token).stages
    states = {sink.name: sink.state for sink in stage.sinks}
    assert states == {"kafka": "committed", "iceberg": "committed", "postgres": "waiting"}
    database.ask(f"ALTER TABLE dropped RENAME TO {table.removeprefix('public.')}")
    pipeline.start()
    pipeline.assert_once(token)


@pytest.fixture(scope="module")
def newest(client: Client, lasting: set[str]) -> Iterator[str]:
    """The name of a pipeline, and of its table. It gets the driver of the one before."""
    stop_others(client, lasting)
    name = f"newest_{uuid.uuid4().hex[:8]}"
    done = client.operation(client.apply(NEWEST.format(name=name, more="")).id, wait_s=WAIT_S)
    assert done.state == "done", done.errors
    yield name
    client.delete(name)


def test_of_each_key_the_last_record_of_its_partition_counts(
    client: Client, stack: StackState, newest: str
) -> None:
    """Also within a batch, whatever Spark does with its rows."""
    records = [{"order_id": n % 10, "n": n} for n in range(20_000)]
    parts = [records[at : at + 1_000] for at in range(0, len(records), 1_000)]
    tokens = [client.send(newest, "orders", part).token for part in parts]
    assert client.wait(client.merge(tokens), timeout_s=WAIT_S).kind == "complete"
    last = {record["order_id"]: record["n"] for record in records if record["n"] % 7}
    found = Database.of(stack).ask(f"SELECT order_id, n FROM public.{newest}")
    assert dict(found) == last


def test_a_query_gets_a_column_and_the_table_gets_it(
    client: Client, stack: StackState, newest: str
) -> None:
    ask, both = Database.of(stack).ask, [{"order_id": 100, "n": 1}, {"order_id": 101, "n": 2}]
    assert (
        client.wait(client.send(newest, "orders", both).token, timeout_s=WAIT_S).kind == "complete"
    )
    more = NEWEST.format(name=newest, more=", n * 2 AS twice")
    changes = client.check(more).changes or ()
    assert [change.message for change in changes if change.kind == "change_table"] == [
        "~ sink newest of stage load: its table gets a column twice, bigint"
    ]
    done = client.operation(client.apply(more).id, wait_s=WAIT_S)
    assert done.state == "done", done.errors
    assert (
        client.wait(client.send(newest, "orders", both[1:]).token, timeout_s=WAIT_S).kind
        == "complete"
    )
    found = ask(f"SELECT order_id, twice FROM public.{newest} WHERE order_id > 99 ORDER BY 1")
    assert found == [(100, None), (101, 4)]


@pytest.mark.parametrize(
    ("settings", "message", "hint"),
    [
        (
            "{connection: warehose, table: public.refused}",
            "no connection is called 'warehose'",
            "did you mean 'warehouse'?",
        ),
        (
            "{connection: warehouse, table: public.refused_before}",
            "its column order_id is text, the query gives bigint",
            "ALTER COLUMN",
        ),
        (
            "{connection: warehouse, table: public.refused, mode: upsert, keys: [id]}",
            "keys.0 'id' is not a column",
            "columns: order_id, customer",
        ),
    ],
)
def test_a_sink_that_cannot_work_is_refused_before_anything_is_made(
    client: Client, stack: StackState, settings: str, message: str, hint: str
) -> None:
    database = Database.of(stack)
    database.ask("CREATE TABLE IF NOT EXISTS public.refused_before (order_id text, customer text)")
    (problem,) = refused(client, REFUSED.format(postgres=settings))
    assert message in problem.message
    assert hint in str(problem.hint)
    assert problem.line is not None
    assert database.ask("SELECT to_regclass('public.refused')") == [(None,)]
