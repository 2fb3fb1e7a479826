"""A runner killed while a pipeline changes: one generation, one answer, every row once."""

from itertools import count
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from e2e.every_sink import WAIT_S, EverySink
from e2e.faults import await_ready, holding, kill, process_of
from e2e.waiting import eventually
from waybill import Client
from waybill_local.services import topic_prefix
from waybill_local.stack import StackState
from waybill_shared.contract import codec
from waybill_shared.contract.events import Reply, pipeline_key
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.clients import read_to_end
from waybill_shared.kafka.partitioner import partition_of
from waybill_shared.process.failpoints import REACHED

PARTITIONS = range(8)
REST = ("Running", "Stopped", "Failed")
paces = (f"{pace} milliseconds" for pace in count(101))


@pytest.fixture(scope="module")
def pipeline(
    client: Client, stack: StackState, kafka: KafkaAdmin, catalog: SqlCatalog
) -> EverySink:
    return EverySink(client, stack, kafka, catalog)


@pytest.mark.parametrize(
    ("topic", "run_ends"),
    [
        pytest.param("pipelines", False, id="between check and record"),
        pytest.param("lifecycle", False, id="between record and switch"),
        pytest.param("lifecycle", True, id="after the end of the old run"),
    ],
)
def test_a_runner_killed_while_a_pipeline_changes_makes_one_change_of_it(
    client: Client,
    stack: StackState,
    pipeline: EverySink,
    failpoints: Path,
    topic: str,
    run_ends: bool,
) -> None:
    before = client.wait_pipeline(pipeline.name, timeout_s=WAIT_S)
    old = pipeline.send(5)
    pipeline.assert_once(old)
    log = stack.folder / "stage_runner" / pipeline.uid / "driver.log"
    ended = log.read_text().count("run has ended")
    held = f"{topic_prefix()}.{topic}"

    await_rest(client)
    own = partition_of(pipeline_key("default", pipeline.uid), len(PARTITIONS))
    with holding(failpoints, held, [own]):
        change = client.apply(changed(before.manifest))
        eventually(lambda: [*failpoints.glob(f"{held}.*{REACHED}")], within_s=WAIT_S)
        if run_ends:
            eventually(lambda: log.read_text().count("run has ended") > ended, within_s=WAIT_S)
        kill([process_of(stack, "stage_runner")])

    assert client.operation(change.id, wait_s=WAIT_S).state == "done"
    assert before.generation is not None
    assert client.pipeline(pipeline.name).generation == before.generation + 1
    pipeline.assert_once(pipeline.send(5))
    assert client.wait(old, timeout_s=WAIT_S).kind == "complete"
    await_ready(stack)
    assert answers(stack, change.id) == ["done"]


def await_rest(client: Client) -> None:
    """What the runner has to say of other pipelines would be held back instead."""
    eventually(lambda: all(each.phase in REST for each in client.pipelines()), within_s=WAIT_S)


def changed(manifest: str | None) -> str:
    assert manifest is not None
    (pace,) = [line for line in manifest.splitlines() if "processingTime" in line]
    return manifest.replace(pace, f"    trigger: {{processingTime: {next(paces)}}}")


def answers(stack: StackState, command_id: str) -> list[str]:
    messages = read_to_end(stack.kafka, f"{topic_prefix()}.replies", PARTITIONS)
    replies = (codec.decode(Reply, message.value() or b"") for message in messages)
    return [str(reply.state) for reply in replies if reply.id == command_id]
