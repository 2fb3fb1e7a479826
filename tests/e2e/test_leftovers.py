"""A driver is killed: nothing of it is left on the machine, and its story is told."""

import tempfile
from pathlib import Path

import httpx2

from e2e.conftest import Pipeline
from e2e.faults import kill
from e2e.waiting import drivers_of, eventually, homes_of
from waybill import Client
from waybill_local.stack import StackState

RECOVERY_TIMEOUT_S = 120.0
UNPACKED = ("blockmgr-*", "spark-*", "artifacts-*", "liblz4-java-*", "snappy-*", "sqlite-*")


def in_system_temp_folder() -> set[Path]:
    folder = Path(tempfile.gettempdir())
    return {path for pattern in UNPACKED for path in folder.glob(pattern)}


def test_a_killed_driver_leaves_nothing_in_any_temp_folder(
    client: Client, stack: StackState, orders: Pipeline
) -> None:
    uid = str(client.pipeline(orders.name).uid)
    (home,) = homes_of(stack, uid)
    scratch = home.parent / "tmp"
    assert list(scratch.glob("blockmgr-*")), "Spark unpacks elsewhere: this test sees nothing"
    before = in_system_temp_folder()

    kill(drivers_of(stack, uid))

    eventually(lambda: not scratch.exists(), within_s=RECOVERY_TIMEOUT_S)
    client.wait_pipeline(orders.name, timeout_s=RECOVERY_TIMEOUT_S)
    assert in_system_temp_folder() <= before


def test_the_story_of_a_pipeline_is_told_in_order(stack: StackState, orders: Pipeline) -> None:
    answer = httpx2.get(f"{stack.url}/v1/pipelines/{orders.name}/events").json()
    phases = [event["phase"] for event in answer["items"] if event["kind"] == "transition"]
    assert phases[:2] == ["Starting", "Running"]
    with httpx2.stream(
        "GET",
        f"{stack.url}/v1/pipelines/{orders.name}/events",
        headers={"Accept": "text/event-stream"},
    ) as stream:
        told = [line for line, _ in zip(stream.iter_lines(), range(3), strict=False)]
    assert told[0] == "event: event"
    assert f"id: {answer['items'][0]['id']}" in told
