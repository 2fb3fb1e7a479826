"""A driver killed at every edge of a batch, with no further input: every row is there, once."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from e2e.every_sink import WAIT_S, EverySink
from e2e.waiting import eventually
from waybill import Client
from waybill_local.stack import StackState
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.process.failpoints import REACHED

EDGES = [
    pytest.param(sink, edge, id=f"{edge} of the {sink} sink")
    for sink in ("kafka", "iceberg", "postgres")
    for edge in ("before_load", "before_commit", "after_commit", "after_event")
] + [pytest.param("postgres", "after_copy", id="after_copy of the postgres sink")]


@pytest.fixture(scope="module")
def crashing(
    request: pytest.FixtureRequest,
    client: Client,
    stack: StackState,
    kafka: KafkaAdmin,
    catalog: SqlCatalog,
) -> Iterator[tuple[EverySink, str]]:
    """One for each sink: a driver that fails again and again is started ever later."""
    pipeline = EverySink(client, stack, kafka, catalog)
    yield pipeline, request.param
    client.delete(pipeline.name)


@pytest.mark.parametrize(("crashing", "edge"), EDGES, indirect=["crashing"])
def test_a_driver_killed_at_an_edge_of_a_batch_writes_every_row_once(
    client: Client, crashing: tuple[EverySink, str], failpoints: Path, edge: str
) -> None:
    pipeline, sink = crashing
    client.wait_pipeline(pipeline.name, timeout_s=WAIT_S)
    point = failpoints / f"{pipeline.uid}.{sink}.{edge}"
    point.touch()
    token = pipeline.send(5)
    eventually(point.with_name(point.name + REACHED).exists, within_s=WAIT_S)
    pipeline.kill_driver()
    pipeline.assert_once(token)
