"""A pipeline that runs again by its schedule: over a runner that dies, and while a run goes on."""

import uuid
from pathlib import Path

from e2e.conftest import order
from e2e.faults import kill_services
from e2e.reading import committed_orders
from e2e.waiting import eventually
from waybill import Client
from waybill_local.stack import StackState
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.process.failpoints import REACHED

WAIT_S = 120.0
SKIP = ("schedule", "schedule")
"""The kind and the actor of an event."""
MANIFEST = """
version: 1
name: {name}
schedule: {{every: 10 seconds}}
inputs:
  - name: orders
    kafka: {{topic: {name}.in, partitions: 1}}
    schema: "order_id BIGINT, customer STRING, amount DECIMAL(10,2), placed_at TIMESTAMP"
stages:
  - name: load
    inputs: [orders]
    trigger: {{availableNow: true}}
    sinks: [{{name: out, kafka: {{topic: {name}.out, key: order_id, partitions: 1}}}}]
"""


class Again:
    """A pipeline with a schedule, and every order that it was given."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.name = f"again-{uuid.uuid4().hex[:8]}"
        self.sent: list[int] = []
        self.waiting: list[tuple[str, int]] = []
        """Tokens of what came between two runs, each with the number of the run before."""

    def send(self) -> str:
        self.sent.append(len(self.sent))
        return str(self.client.send(self.name, "orders", [order(self.sent[-1])]).token)

    def run(self) -> int:
        return self.client.pipeline(self.name).run or 0

    def between_two_runs(self) -> bool:
        run, token = self.run(), self.send()
        (stage,) = self.client.outcome(token).stages
        self.waiting.append((token, run))
        return stage.blocked_by == "not_running" and stage.next_run_at is not None

    def complete(self, token: str) -> None:
        assert self.client.wait(token, timeout_s=WAIT_S).kind == "complete"

    def skipped(self) -> list[str]:
        events = self.client.history(self.name)
        return [str(each.reason) for each in events if (each.kind, each.actor) == SKIP]


def test_times_of_a_schedule_run_a_pipeline_again_and_one_that_is_skipped_is_an_event(
    client: Client, stack: StackState, kafka: KafkaAdmin, failpoints: Path
) -> None:
    again = Again(client)
    name = again.name
    done = client.operation(client.apply(MANIFEST.format(name=name)).id, wait_s=WAIT_S)
    assert done.state == "done", done.errors

    eventually(again.between_two_runs, within_s=WAIT_S)
    token, run = again.waiting[-1]
    again.complete(token)
    eventually(lambda: again.run() > run, within_s=WAIT_S)

    eventually(again.between_two_runs, within_s=WAIT_S)
    kill_services(stack, ["stage_runner"])
    again.complete(again.waiting[-1][0])

    point = failpoints / f"{client.pipeline(name).uid}.out.before_load"
    point.touch()
    token, reached = again.send(), point.with_name(point.name + REACHED)
    eventually(reached.exists, within_s=WAIT_S)
    run, skipped = again.run(), len(again.skipped())
    eventually(lambda: len(again.skipped()) > skipped, within_s=WAIT_S)
    assert again.run() == run
    reached.unlink()
    again.complete(token)

    client.operation(client.stop(name).id, wait_s=WAIT_S)
    eventually(lambda: client.pipeline(name).next_run_at is None, within_s=WAIT_S)
    assert committed_orders(stack, kafka, f"{name}.out") == again.sent
    starts = [each for each in client.history(name) if each.phase_from == "Finished"]
    assert {each.actor for each in starts if each.phase == "Starting"} == {"schedule"}
