"""A record that lets its batch hang is put into its dead-letter topic, and all else goes on."""

from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from e2e.every_sink import START_TIMEOUT_S, WAIT_S, EverySink
from e2e.reading import committed_orders
from e2e.waiting import eventually
from waybill import Client, RecordLocation
from waybill_local.stack import StackState
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.process.failpoints import REACHED


@pytest.fixture(scope="module")
def pipeline(
    client: Client, stack: StackState, kafka: KafkaAdmin, catalog: SqlCatalog
) -> EverySink:
    return EverySink(client, stack, kafka, catalog)


def test_a_record_is_put_once_by_drivers_that_are_killed_and_can_be_replayed(
    stack: StackState,
    kafka: KafkaAdmin,
    catalog: SqlCatalog,
    pipeline: EverySink,
    failpoints: Path,
) -> None:
    client, name = pipeline.client, pipeline.name
    hangs = failpoints / f"{pipeline.uid}.both.before_read"
    killed = failpoints / f"{pipeline.uid}.after_put"
    hangs.touch()
    token = pipeline.send(5)
    await_reached(hangs)

    killed.touch()
    record = RecordLocation(topic=pipeline.topic, partition=0, offset=2)
    asked = client.put_dead_letter(name, record, "its batch hangs", wait_s=0)
    await_reached(killed)
    pipeline.kill_driver()
    for point in (hangs, killed):
        point.with_name(point.name + REACHED).unlink()
    done = client.operation(asked.id, wait_s=START_TIMEOUT_S)
    assert done.state == "done", done.errors

    outcome = client.wait(token, timeout_s=WAIT_S)
    assert outcome.kind == "dead_lettered"
    (letter,) = outcome.dead
    assert (letter.offset, letter.reason, letter.sink) == (2, "put_by_operator", None)
    assert letter.message.startswith("its batch hangs (put by ")
    assert rows_everywhere(pipeline, stack, kafka, catalog) == [0, 1, 3, 4]

    assert letter.id is not None
    replayed = client.replay(name, [letter.id])
    assert client.wait(replayed.token, timeout_s=WAIT_S).kind == "complete"
    assert rows_everywhere(pipeline, stack, kafka, catalog) == [0, 1, 2, 3, 4]

    assert put(pipeline, 2) is None, "it is there already"
    assert committed_orders(stack, kafka, f"{pipeline.topic}.dlq") == [2]
    assert client.outcome(token).kind == "dead_lettered"


def test_what_is_final_or_is_not_there_is_refused(pipeline: EverySink, kafka: KafkaAdmin) -> None:
    token = pipeline.send(1)
    assert pipeline.client.wait(token, timeout_s=WAIT_S).kind == "complete"
    processed, beyond = put(pipeline, 3), put(pipeline, 90)
    assert processed is not None
    assert "has processed it already" in processed
    end = kafka.ends(pipeline.topic, [0])[0]
    assert beyond == f"{pipeline.topic}[0]@90: the topic holds 0 to {end}"
    assert pipeline.client.outcome(token).kind == "complete"


def await_reached(point: Path) -> None:
    eventually(point.with_name(point.name + REACHED).exists, within_s=START_TIMEOUT_S)


def put(pipeline: EverySink, offset: int) -> str | None:
    """Put this record there. Return why that is refused."""
    record = RecordLocation(topic=pipeline.topic, partition=0, offset=offset)
    asked = pipeline.client.put_dead_letter(pipeline.name, record, "again", wait_s=0)
    done = pipeline.client.operation(asked.id, wait_s=START_TIMEOUT_S)
    return None if done.state == "done" else done.errors[0].message


def rows_everywhere(
    pipeline: EverySink, stack: StackState, kafka: KafkaAdmin, catalog: SqlCatalog
) -> list[int]:
    """The orders that every sink has."""
    written = sorted(committed_orders(stack, kafka, f"{pipeline.name}.out"))
    rows = catalog.load_table(pipeline.table).scan().to_arrow()
    assert written == sorted(rows.column("order_id").to_pylist()) == sorted(pipeline.in_postgres())
    return written
