"""A pipeline that is deleted: what its sinks hold is told, whatever became of its driver."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from e2e.every_sink import WAIT_S, EverySink
from e2e.faults import process_of
from e2e.waiting import eventually, gone
from waybill import Client, Operation
from waybill_local.stack import StackState
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.process.failpoints import REACHED


@pytest.fixture
def pipeline(
    client: Client, stack: StackState, kafka: KafkaAdmin, catalog: SqlCatalog
) -> EverySink:
    return EverySink(client, stack, kafka, catalog)


@pytest.fixture
def held(pipeline: EverySink, client: Client, failpoints: Path) -> str:
    """The token of a batch that stands in both sinks; the driver is held before it says so."""
    client.wait(pipeline.send(1), timeout_s=WAIT_S)
    point = failpoints / f"{pipeline.uid}.iceberg.after_commit"
    point.touch()
    token = pipeline.send(5)
    eventually(point.with_name(point.name + REACHED).exists, within_s=WAIT_S)
    return token


def begin_deletion(client: Client, name: str) -> Operation:
    deletion = client.delete(name)
    eventually(lambda: gone(client, name), within_s=WAIT_S)
    return deletion


def kill_driver(pipeline: EverySink, stack: StackState) -> None:
    pipeline.kill_driver()


def kill_runner(pipeline: EverySink, stack: StackState) -> None:
    """Its drivers die with it; the next runner finds a record of a deletion that is not over."""
    process_of(stack, "stage_runner").kill()


@pytest.mark.parametrize("kill", [kill_driver, kill_runner])
def test_a_deletion_tells_what_a_killed_driver_did_not(
    pipeline: EverySink,
    held: str,
    client: Client,
    stack: StackState,
    kill: Callable[[EverySink, StackState], None],
) -> None:
    deletion = begin_deletion(client, pipeline.name)
    kill(pipeline, stack)

    assert client.operation(deletion.id, wait_s=WAIT_S).state == "done"
    pipeline.assert_once(held)
