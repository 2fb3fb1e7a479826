"""A driver killed at every edge of a batch, with no further input: every row is there, once."""

from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from e2e.two_sinks import WAIT_S, TwoSinks
from e2e.waiting import eventually
from waybill import Client
from waybill_local.stack import StackState
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.process.failpoints import REACHED

EDGES = [
    pytest.param(sink, edge, id=f"{edge} of the {sink} sink")
    for sink in ("kafka", "iceberg")
    for edge in ("before_commit", "after_commit", "after_event")
]


@pytest.fixture(scope="module")
def crashing(client: Client, stack: StackState, kafka: KafkaAdmin, catalog: SqlCatalog) -> TwoSinks:
    return TwoSinks(client, stack, kafka, catalog)


@pytest.mark.parametrize(("sink", "edge"), EDGES)
def test_a_driver_killed_at_an_edge_of_a_batch_writes_every_row_once(
    client: Client, crashing: TwoSinks, failpoints: Path, sink: str, edge: str
) -> None:
    client.wait_pipeline(crashing.name, timeout_s=WAIT_S)
    point = failpoints / f"{crashing.uid}.{sink}.{edge}"
    point.touch()
    token = crashing.send(5)
    eventually(point.with_name(point.name + REACHED).exists, within_s=WAIT_S)
    crashing.kill_driver()
    crashing.assert_once(token)
