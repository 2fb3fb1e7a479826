"""Drivers that are paused in big batches while their pipeline is deleted.

Who reads after the deletion finds no row of a record that is lost."""

from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from e2e.every_sink import START_TIMEOUT_S, WAIT_S
from e2e.moments import paused_driver, reached
from e2e.second_driver import home_of, second_driver
from e2e.waiting import eventually
from e2e.waves import Waves
from waybill import Client
from waybill_local.stack import StackState

TABLES = ("added", "newest", "warehouse")

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def waves(client: Client, stack: StackState, catalog: SqlCatalog) -> Waves:
    return Waves(client, stack, catalog)


@pytest.mark.parametrize(
    "point", ["added.in_share", "newest.before_commit", "warehouse.after_copy"]
)
def test_a_paused_driver_writes_nothing_of_what_is_lost(
    waves: Waves, stack: StackState, failpoints: Path, tmp_path: Path, point: str
) -> None:
    """Its pipeline is deleted meanwhile. What goes to Kafka at least once nobody can take back."""
    client = waves.client
    assert client.wait(waves.send(client), timeout_s=WAIT_S).kind == "dead_lettered"
    home = home_of(stack, waves.uid)
    assert client.operation(client.stop(waves.name).id, wait_s=WAIT_S).state == "done"
    with second_driver(stack, waves.uid, tmp_path, home) as second:
        eventually(second.runs, within_s=START_TIMEOUT_S)
        (failpoints / f"{waves.uid}.{point}").touch()
        token = waves.send(client)
        with reached(failpoints, f"{waves.uid}.{point}"), paused_driver(stack, second.process.pid):
            deletion = client.operation(client.delete(waves.name).id, wait_s=WAIT_S)
            assert deletion.state == "done", deletion.errors
            assert client.wait(token, timeout_s=WAIT_S).kind == "lost"
            before = waves.found()
        eventually(second.ended, within_s=WAIT_S)

    after, sink = waves.found(), point.partition(".")[0]
    assert not {*waves.given[token].good} <= after[sink].keys()
    assert {each: after[each] for each in TABLES} == {each: before[each] for each in TABLES}
