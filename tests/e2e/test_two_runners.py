"""A runner that is cut off, and comes back after another has taken its pipelines over."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from e2e.every_sink import WAIT_S, EverySink
from e2e.faults import BACK_TIMEOUT_S, await_ready, holding, paused, process_of
from e2e.waiting import drivers_of, eventually, gone
from integration.conftest import free_port
from waybill import Client
from waybill_local.services import topic_prefix
from waybill_local.stack import StackState
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.process.failpoints import FOLDER, REACHED
from waybill_stage_runner.adapters.recovery import read_records

STOP_TIMEOUT_S = 60.0
TAKEOVER_TIMEOUT_S = 180.0  # until the group misses the first, and the second has a driver


@pytest.fixture
def pipeline(
    client: Client, stack: StackState, kafka: KafkaAdmin, catalog: SqlCatalog
) -> EverySink:
    return EverySink(client, stack, kafka, catalog)


@contextmanager
def second_runner(stack: StackState, folder: Path) -> Iterator[None]:
    """As on another host, with a state folder of its own."""
    environment = {
        **process_of(stack, "stage_runner").environ(),
        "WAYBILL_STAGE_RUNNER_PORT": str(free_port()),
        "WAYBILL_STAGE_RUNNER_STATE_FOLDER": str(folder / "state"),
        FOLDER: str(folder),
    }
    with (folder / "stage_runner.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "waybill_stage_runner"], env=environment, stdout=log, stderr=log
        )
    try:
        yield
    finally:
        process.terminate()
        process.wait(STOP_TIMEOUT_S)


def newest_record(stack: StackState, topic: str, uid: str) -> PipelineRecord:
    found = read_records(stack.kafka, topic, range(8))
    (record,) = [r for records in found.values() for r in records if r.pipeline_uid == uid]
    return record


def test_nothing_of_a_runner_that_was_cut_off_takes_effect_after_its_successor(
    client: Client, stack: StackState, pipeline: EverySink, failpoints: Path, tmp_path: Path
) -> None:
    """It had carried out a change, whose record was on its way. The other one carries it out
    too, then deletes the pipeline; and only now does the first one come back."""
    pipeline.assert_once(pipeline.send(5))
    topic, first = f"{topic_prefix()}.pipelines", process_of(stack, "stage_runner")
    manifest = client.pipeline(pipeline.name).manifest
    assert manifest is not None

    with holding(failpoints, topic):
        change = client.apply(manifest.replace("100 milliseconds", "200 milliseconds"))
        eventually(lambda: [*failpoints.glob(f"{topic}.*{REACHED}")], within_s=WAIT_S)
        with second_runner(stack, tmp_path):
            with paused([first]):
                done = client.operation(change.id, wait_s=TAKEOVER_TIMEOUT_S)
                assert (done.state, client.pipeline(pipeline.name).generation) == ("done", 2)
                pipeline.assert_once(pipeline.send(5))
                deletion = client.delete(pipeline.name)
                assert client.operation(deletion.id, wait_s=WAIT_S).state == "done"
                assert gone(client, pipeline.name)
                for reached in failpoints.glob(f"{topic}.*{REACHED}"):
                    reached.unlink()
            eventually(lambda: not first.is_running(), within_s=BACK_TIMEOUT_S)
            await_ready(stack)

    await_ready(stack)
    record = newest_record(stack, topic, pipeline.uid)
    assert (record.desired, record.closed) == ("deleted", True)
    assert gone(client, pipeline.name)
    assert drivers_of(stack, pipeline.uid) == []
