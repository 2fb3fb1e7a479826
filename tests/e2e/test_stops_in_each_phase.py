"""A stop in each phase of a pipeline: it is done, each command is answered, each row is there once.

The driver is at a failpoint when the stop comes. A forced stop is done while it stays there.
"""

from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from e2e.every_sink import WAIT_S, EverySink
from e2e.test_killed_runner import CASES, Site
from e2e.under_load import await_done
from e2e.waiting import eventually, group_of
from waybill import Client
from waybill.models import StopMode
from waybill_local.stack import StackState
from waybill_shared.kafka.admin import KafkaAdmin


@pytest.fixture(scope="module")
def place(
    client: Client, stack: StackState, kafka: KafkaAdmin, catalog: SqlCatalog, failpoints: Path
) -> Site:
    pipeline = EverySink(client, stack, kafka, catalog)
    pipeline.assert_once(pipeline.send(5))
    return Site(pipeline, stack, failpoints)


@pytest.mark.parametrize("mode", ["checkpoint", "force"])
@pytest.mark.parametrize("phase", CASES)
def test_a_stop_is_done_in_each_phase(place: Site, phase: str, mode: StopMode) -> None:
    client, name, case = place.client, place.name, CASES[phase]
    usual = client.pipeline(name).parallelism
    case.bring(place)
    eventually(lambda: client.pipeline(name).phase in case.phases, within_s=WAIT_S)
    stop = client.stop(name, mode, wait_s=0)
    if mode == "checkpoint":
        eventually(lambda: client.pipeline(name).desired == "stopped", within_s=WAIT_S)
        place.let_go()
    assert client.operation(stop.id, wait_s=WAIT_S).state == "done"
    assert client.wait_pipeline(name, "Stopped", WAIT_S).desired == "stopped"
    assert group_of(place.stack, place.pipeline.uid) is None
    place.let_go()
    for asked in place.asked:
        assert client.operation(asked.id, wait_s=WAIT_S).state in {"done", "failed"}
    place.asked.clear()

    if phase == "Rescaling":
        await_done(client, client.rescale(name, usual or 1))
    later = place.pipeline.send(5)
    place.pipeline.start()
    place.pipeline.assert_once(later)
