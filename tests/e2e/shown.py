"""Pipelines that a browser looks at."""

import uuid
from dataclasses import dataclass
from typing import Final

from waybill import Client

WAIT_S: Final = 120.0
MANIFEST: Final = """\
version: 1
name: {name}
state: {state}
inputs:
  - name: orders
    kafka: {{topic: {name}.in, partitions: 1}}
    schema: "order_id BIGINT, amount INT"
    expectations: [{{name: positive, expect: "amount >= 0"}}]
stages:
  - name: load
    inputs: [orders]
    trigger: {{processingTime: 100 milliseconds}}
    sinks: [{{name: out, kafka: {{topic: {name}.out, partitions: 1}}}}]
deadLetter: {{budget: 10000 per 1 second}}
"""


@dataclass(frozen=True, slots=True)
class Shown:
    client: Client
    name: str

    def apply_text(self, manifest: str) -> None:
        done = self.client.operation(self.client.apply(manifest).id, wait_s=WAIT_S)
        assert done.state == "done", done.errors

    def delete(self) -> None:
        done = self.client.operation(self.client.delete(self.name).id, wait_s=WAIT_S)
        assert done.state == "done", done.errors


class Small(Shown):
    """One stage, and room for 10,000 dead letters."""

    def apply(self, state: str = "running") -> None:
        self.apply_text(MANIFEST.format(name=self.name, state=state))

    def send(self, records: int = 1) -> str:
        orders = [{"order_id": number, "amount": 1} for number in range(records)]
        return str(self.client.send(self.name, "orders", orders).token)

    @property
    def dead_letters(self) -> str:
        return f"/p/{self.name}/dead-letters"


def named(client: Client, kind: str) -> Small:
    return Small(client, f"{kind}-{uuid.uuid4().hex[:8]}")
