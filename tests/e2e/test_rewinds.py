"""A stage that reads again: each row once more in every sink, and no token says otherwise."""

from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from e2e.every_sink import START_TIMEOUT_S, WAIT_S, EverySink
from e2e.reading import committed_orders
from e2e.waiting import eventually
from postgres import Database
from waybill import Client, Operation
from waybill_local.stack import StackState
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.process.failpoints import REACHED

UPSERT = """
version: 1
name: {name}
inputs:
  - name: orders
    kafka: {{topic: {name}.in, partitions: 1}}
    schema: "order_id BIGINT, n BIGINT"
stages:
{before}  - name: load
    inputs: [{input}]
    maxOffsetsPerTrigger: 2  # a record and the end of its transaction
    sinks:
      - name: newest
        postgres: {{connection: warehouse, table: public.{name}, mode: upsert, keys: [order_id]}}
"""
BEFORE = """\
  - name: copy
    inputs: [orders]
    maxOffsetsPerTrigger: 1
    sinks: [{{name: copied, kafka: {{topic: {name}.copied}}}}]
"""


@pytest.fixture(scope="module")
def pipeline(
    client: Client, stack: StackState, kafka: KafkaAdmin, catalog: SqlCatalog
) -> EverySink:
    return EverySink(client, stack, kafka, catalog)


def test_a_driver_killed_between_two_sinks_of_a_rewind_rewinds_both(
    stack: StackState,
    kafka: KafkaAdmin,
    catalog: SqlCatalog,
    pipeline: EverySink,
    failpoints: Path,
) -> None:
    client, name = pipeline.client, pipeline.name
    first = pipeline.send(5)
    pipeline.assert_once(first)
    here = f"{pipeline.topic}[0]=2"
    refused = client.restart(name, here, wait_s=10)
    assert refused.problem == "rewind_not_confirmed"
    assert "records of" in refused.errors[0].message

    point = failpoints / f"{pipeline.uid}.iceberg.before_rewind"
    point.touch()
    asked = client.restart(name, here, yes=True)
    reached = point.with_name(point.name + REACHED)
    eventually(reached.exists, within_s=START_TIMEOUT_S)
    pipeline.kill_driver()
    reached.unlink()
    assert client.operation(asked.id, wait_s=START_TIMEOUT_S).state == "done"
    assert client.outcome(first).kind == "complete"

    last = pipeline.send(5)
    outcome = client.wait(last, timeout_s=WAIT_S)
    assert outcome.kind == "complete"
    twice = sorted([*pipeline.sent, *pipeline.sent[2:5]])
    assert committed_orders(stack, kafka, f"{name}.out") == [0, 1, 2, 3, 4, *pipeline.sent[2:]]
    rows = catalog.load_table(pipeline.table).scan().to_arrow()
    assert sorted(rows.column("order_id").to_pylist()) == twice
    assert sorted(pipeline.in_postgres()) == twice

    pipeline.restart()
    assert sorted(pipeline.in_postgres()) == twice, "it was done once"
    assert client.outcome(first).kind == "complete"


def test_what_is_skipped_is_lost_and_no_later_rewind_writes_it(
    pipeline: EverySink,
) -> None:
    client, name = pipeline.client, pipeline.name
    pipeline.stop()
    before = len(pipeline.sent)
    skipped = pipeline.send(3)
    done(client, client.restart(name, "latest", yes=True))
    outcome = client.wait(skipped, timeout_s=WAIT_S)
    assert outcome.kind == "lost"
    assert {lost.reason for lost in outcome.lost} == {"skipped_by_operator"}

    after = pipeline.send(2)
    assert client.wait(after, timeout_s=WAIT_S).kind == "complete"
    (last,) = [order for order in pipeline.in_postgres() if order == pipeline.sent[-1]]
    done(client, client.restart(name, f"{pipeline.topic}[0]=4", yes=True))
    eventually(lambda: pipeline.in_postgres().count(last) == 2, within_s=WAIT_S)
    assert not set(pipeline.sent[before : before + 3]) & set(pipeline.in_postgres())
    assert client.outcome(skipped).kind == "lost"


def test_a_sink_that_shows_older_rows_says_so(
    client: Client, stack: StackState, failpoints: Path
) -> None:
    manifest = UPSERT.format(name="newest", before="", input="orders")
    show_older_rows(client, stack, failpoints, "newest", manifest)


def test_a_sink_that_gets_older_rows_of_a_stage_before_says_so(
    client: Client, stack: StackState, failpoints: Path
) -> None:
    before = BEFORE.format(name="later")
    manifest = UPSERT.format(name="later", before=before, input="copied")
    show_older_rows(client, stack, failpoints, "later", manifest)


def show_older_rows(
    client: Client, stack: StackState, failpoints: Path, name: str, manifest: str
) -> None:
    """Hold a pipeline in the first batch that comes again, and look at its table and tokens."""
    assert client.operation(client.apply(manifest).id, wait_s=START_TIMEOUT_S).state == "done"
    send = [client.send(name, "orders", [{"order_id": 1, "n": n}]).token for n in (1, 2, 3)]
    assert client.wait(send[-1], timeout_s=WAIT_S).kind == "complete"
    assert (shown(stack, name), rewinding(client, send[0])) == (3, False)

    point = failpoints / f"{client.pipeline(name).uid}.newest.after_commit"
    point.touch()
    refused = client.restart(name, state="fresh", wait_s=10)
    assert "sink newest shows older rows again" in refused.errors[-1].message
    asked = client.restart(name, state="fresh", yes=True)
    assert rewinding(client, send[0]) is True, "before a driver begins"
    reached = point.with_name(point.name + REACHED)
    eventually(reached.exists, within_s=START_TIMEOUT_S)
    assert shown(stack, name) == 1, "the older row can be seen again"
    outcome = client.outcome(send[-1])
    assert (outcome.kind, rewinding(client, send[-1])) == ("complete", True)

    reached.unlink()
    done(client, asked)
    eventually(lambda: rewinding(client, send[0]) is False, within_s=WAIT_S)
    assert shown(stack, name) == 3


def shown(stack: StackState, table: str) -> int:
    """The row that readers of the table see."""
    ((n,),) = Database.of(stack).ask(f"SELECT n FROM public.{table}")
    return int(n)


def rewinding(client: Client, token: str) -> bool | None:
    *_, (sink,) = (stage.sinks for stage in client.outcome(token).stages)
    return sink.rewinding


def test_what_is_set_while_it_is_stopped_is_pending_until_the_next_run_has_done_it(
    pipeline: EverySink,
) -> None:
    client, name, here = pipeline.client, pipeline.name, f"{pipeline.topic}[0]=1"
    assert client.set_offsets(name, here, yes=True, wait_s=10).problem == "not_allowed_now"
    pipeline.stop()
    before = pipeline.in_postgres()
    assert client.set_offsets(name, here, wait_s=10).problem == "rewind_not_confirmed"
    for _ in range(2):
        done(client, client.set_offsets(name, here, yes=True))
        eventually(lambda: pending_of(client, name) == [1])
        done(client, client.reset_offsets(name))
        eventually(lambda: pending_of(client, name) == [None])

    beyond = client.set_offsets(name, f"{pipeline.topic}[0]=9999", yes=True, wait_s=10)
    assert (beyond.problem, "holds 0 to" in beyond.errors[0].message) == ("invalid", True)
    done(client, client.set_offsets(name, here, yes=True))
    assert client.pipeline(name).phase == "Stopped"
    pipeline.start()
    again = [order for order in pipeline.sent[1:] if order in before]
    eventually(lambda: sorted(pipeline.in_postgres()) == sorted([*before, *again]), within_s=WAIT_S)
    eventually(lambda: pending_of(client, name) == [None])


def pending_of(client: Client, name: str) -> list[int | None]:
    (stage,) = client.offsets(name).stages
    return [each.pending for each in stage.inputs[0].partitions]


def done(client: Client, asked: Operation) -> None:
    ended = client.operation(asked.id, wait_s=START_TIMEOUT_S)
    assert ended.state == "done", ended.errors
