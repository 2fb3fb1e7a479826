"""A batch of more bytes than may be taken at once: in pieces, and every row once."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from e2e.conftest import order
from e2e.every_sink import WAIT_S, EverySink
from e2e.waiting import eventually
from waybill import Client
from waybill_local.stack import StackState
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.clients import make_producer
from waybill_shared.process.failpoints import REACHED

LIMIT = 600_000
SIZES = (250_000, 250_000, 250_000, 800_000, 250_000, 250_000, 250_000)
PIECES = 5  # two, one, the one that is larger than the limit, two, one


@pytest.fixture
def pipeline(
    client: Client, stack: StackState, kafka: KafkaAdmin, catalog: SqlCatalog
) -> Iterator[EverySink]:
    limits = f"maxBytesPerTrigger: {LIMIT}"
    pipeline = EverySink(client, stack, kafka, catalog, limits=limits)
    yield pipeline
    client.delete(pipeline.name)


def produce(stack: StackState, pipeline: EverySink) -> str:
    """What one batch will hold; a token for all of it."""
    producer = make_producer(stack.kafka)
    for size in SIZES:
        number = next(pipeline.numbers)
        pipeline.sent.append(number)
        record = order(number) | {"customer": "c" * size}
        producer.produce(pipeline.topic, value=json.dumps(record).encode(), partition=0)
    assert producer.flush(WAIT_S) == 0
    return pipeline.client.token_for(pipeline.name, input="orders").token


@pytest.mark.parametrize("sink", ["kafka", "iceberg"])
def test_a_driver_killed_between_two_pieces_writes_every_row_once(
    pipeline: EverySink, stack: StackState, catalog: SqlCatalog, failpoints: Path, sink: str
) -> None:
    pipeline.stop()
    token = produce(stack, pipeline)
    point = failpoints / f"{pipeline.uid}.{sink}.after_event"
    point.touch()
    pipeline.start()
    eventually(point.with_name(point.name + REACHED).exists, within_s=WAIT_S)

    pipeline.kill_driver()

    pipeline.assert_once(token)
    assert len(catalog.load_table(pipeline.table).snapshots()) == PIECES
