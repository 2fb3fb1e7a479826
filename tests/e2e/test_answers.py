"""Changes that need no driver are answered when they are done or refused: over HTTP, to the SDK and
on the command line. What is not done by then was taken, as ever."""

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest

from e2e.conftest import orders_manifest
from e2e.faults import paused, process_of
from e2e.waiting import eventually
from waybill import Client
from waybill_local.services import topic_prefix
from waybill_local.stack import StackState
from waybill_shared.contract import codec
from waybill_shared.contract.events import Command
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.clients import read_to_end

WAYBILL = Path(sys.executable).with_name("waybill")
HELD_S = 10  # as long as ingress waits at most
WAIT_S = 120.0
Ran = subprocess.CompletedProcess[str]


class Stopped:
    """A pipeline that was applied as one that does not run, and ways to change it."""

    def __init__(self, stack: StackState, client: Client, folder: Path) -> None:
        text, pipeline = orders_manifest()
        self.manifest = text.replace("version: 1\n", "version: 1\nstate: stopped\n")
        self.name = pipeline.name
        self.url = f"{stack.url}/v1/pipelines/{self.name}"
        self.incompatible = self.manifest.replace(pipeline.topic, f"{self.name}.other")
        own = {"WAYBILL_URL": stack.url, "XDG_STATE_HOME": str(folder / "state")}
        self._environment = {**os.environ, **own}
        self._folder = folder
        made = client.apply(self.manifest, wait_s=HELD_S)
        # On a stack that has just begun no driver is ready to check it within one answer.
        self.made = client.operation(made.id, wait_s=WAIT_S) if made.pending else made

    def put(self, manifest: str, wait_s: float = HELD_S) -> httpx2.Response:
        return httpx2.put(self.url, content=manifest, params={"wait": wait_s}, timeout=WAIT_S)

    def post(self, action: str, wait_s: float = HELD_S) -> httpx2.Response:
        return httpx2.post(f"{self.url}/{action}", params={"wait": wait_s}, timeout=WAIT_S)

    def run(self, *arguments: str) -> Ran:
        return subprocess.run(
            [WAYBILL, *arguments],
            cwd=self._folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            check=False,
        )

    def apply(self, manifest: str) -> Ran:
        (self._folder / "orders.yaml").write_text(manifest)
        return self.run("apply", "-f", "orders.yaml")


@pytest.fixture(scope="module")
def stopped(
    stack: StackState, client: Client, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stopped]:
    pipeline = Stopped(stack, client, tmp_path_factory.mktemp("answers"))
    yield pipeline
    client.delete(pipeline.name)


def test_who_was_told_that_it_is_done_finds_it_there(stopped: Stopped, client: Client) -> None:
    assert (stopped.made.state, stopped.made.generation) == ("done", 1)
    assert client.pipeline(stopped.name).generation == 1


def test_what_is_done_is_told_as_the_operation_is(stopped: Stopped, stack: StackState) -> None:
    for answer in (stopped.put(stopped.manifest), stopped.post("stop")):
        told = answer.json()
        assert (answer.status_code, told["state"], told["generation"]) == (200, "done", 1)
        later = httpx2.get(f"{stack.url}/v1/operations/{told['id']}", params={"wait": HELD_S})
        assert later.json() == told


def test_the_sdk_and_the_command_tell_what_is_done(stopped: Stopped, client: Client) -> None:
    assert client.stop(stopped.name, wait_s=HELD_S).state == "done"
    stop, apply = stopped.run("stop", stopped.name), stopped.apply(stopped.manifest)
    assert (stop.returncode, stop.stdout) == (0, f"{stopped.name} stop done generation 1\n")
    assert (apply.returncode, apply.stdout) == (0, f"{stopped.name} apply done generation 1\n")


def test_who_does_not_wait_asks_for_the_operation(
    stopped: Stopped, stack: StackState, client: Client
) -> None:
    taken = stopped.post("stop", wait_s=0)
    assert taken.status_code == 202
    operation = taken.json()["operation"]
    assert taken.headers["location"] == f"/v1/operations/{operation}"
    assert client.operation(operation, wait_s=WAIT_S).state == "done"
    assert client.stop(stopped.name, wait_s=0).pending


def test_what_a_pipeline_cannot_become_is_refused_for_its_content(
    stopped: Stopped, stack: StackState, client: Client
) -> None:
    answer = stopped.put(stopped.incompatible)
    told = answer.json()
    assert (answer.status_code, told["problem"]) == (422, "plan_incompatible")
    assert told["type"] == "urn:waybill:problem:plan_incompatible"
    later = httpx2.get(f"{stack.url}/v1/operations/{told['id']}", params={"wait": HELD_S}).json()
    assert later.items() <= told.items()
    assert later["errors"][0]["path"] == "stages.0.inputs"

    refused = client.apply(stopped.incompatible, wait_s=HELD_S)
    assert (refused.state, refused.problem) == ("failed", "plan_incompatible")
    apply = stopped.apply(stopped.incompatible)
    place = f"\norders.yaml:{later['errors'][0]['line']}:"
    assert (apply.returncode, apply.stdout) == (1, "")
    assert place in apply.stderr
    assert apply.stderr.endswith(f"error: apply {stopped.name} failed\n")


def test_what_was_superseded_is_refused_for_the_state(
    stopped: Stopped, stack: StackState, client: Client, kafka: KafkaAdmin
) -> None:
    """Four commands wait for a runner that stands still; it finds them one behind the other."""

    def taken() -> int:
        topic = f"{topic_prefix()}.commands"
        messages = read_to_end(stack.kafka, topic, kafka.identify([topic])[topic].partitions)
        commands = (codec.decode(Command, message.value() or b"") for message in messages)
        return sum(command.pipeline == stopped.name for command in commands)

    before = taken()
    with ThreadPoolExecutor() as pool:
        with paused([process_of(stack, "stage_runner")]):
            command = pool.submit(stopped.run, "start", stopped.name)
            eventually(lambda: taken() == before + 1, within_s=WAIT_S)
            sdk = pool.submit(client.start, stopped.name, wait_s=HELD_S)
            eventually(lambda: taken() == before + 2, within_s=WAIT_S)
            http = pool.submit(stopped.post, "start")
            eventually(lambda: taken() == before + 3, within_s=WAIT_S)
            last = client.stop(stopped.name, wait_s=0)

        told = http.result(WAIT_S)
        assert (told.status_code, told.json()["problem"]) == (409, "superseded")
        assert told.json()["errors"][0]["message"] == "superseded by a later stopped command"
        assert (sdk.result(WAIT_S).state, sdk.result().problem) == ("failed", "superseded")
        assert command.result(WAIT_S).returncode == 1
        assert "superseded by a later running command" in command.result().stderr
    assert client.operation(last.id, wait_s=WAIT_S).state == "done"
