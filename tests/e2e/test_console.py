"""Rows in the log of a pipeline, beside a sink that tokens wait for, and alone."""

import uuid

from e2e.waiting import eventually
from waybill import Client
from waybill_local.stack import StackState

WAIT_S = 120.0
ALONE = """
version: 1
name: {name}
inputs: [{{name: orders, kafka: {{topic: {name}.in, partitions: 1}}, schema: "id BIGINT"}}]
stages:
  - name: look
    inputs: [orders]
    trigger: {{processingTime: 100 milliseconds}}
    sinks:
      - {{name: seen, console: {{rows: 2}}}}
"""
BESIDE = ALONE + "      - {{name: out, kafka: {{topic: {name}.out, partitions: 1}}}}\n"


def apply(client: Client, manifest: str) -> None:
    done = client.operation(client.apply(manifest).id, wait_s=WAIT_S)
    assert done.state == "done", done.errors


def test_rows_are_shown_and_tokens_wait_for_it_only_where_it_is_alone(
    client: Client, stack: StackState
) -> None:
    name = f"look-{uuid.uuid4().hex[:8]}"
    apply(client, BESIDE.format(name=name))
    log = stack.folder / "stage_runner" / str(client.pipeline(name).uid) / "driver.log"
    older = client.send(name, "orders", [{"id": 700 + n} for n in range(3)]).token
    first = client.wait(older, timeout_s=WAIT_S)
    assert first.kind == "complete"
    eventually(lambda: "and 1 more" in log.read_text(), within_s=WAIT_S)
    assert "id\\n---\\n700\\n701\\nand 1 more" in log.read_text()
    seen, out = client.pipeline(name).stages[0].sinks
    assert (seen.terminal, out.terminal) == (False, True)

    apply(client, ALONE.format(name=name))
    newer = client.send(name, "orders", [{"id": 710}]).token
    assert client.wait(newer, timeout_s=WAIT_S).kind == "complete"
    assert "id\\n---\\n710" in log.read_text()
    assert client.outcome(older).kind == "complete"
    client.delete(name)
