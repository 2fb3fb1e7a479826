"""A pipeline of one stage with a sink of every kind, and every order that it was given."""

import signal
import uuid
from itertools import count
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from e2e.conftest import order
from e2e.reading import committed_orders
from e2e.waiting import drivers_of
from postgres import Database
from waybill import Client, PipelineFailed
from waybill.models import Fault, StartFrom
from waybill.pipelines import PipelineFailure
from waybill_local.stack import StackState
from waybill_shared.kafka.admin import KafkaAdmin

START_TIMEOUT_S = 120.0
WAIT_S = 120.0
MANIFEST = """
version: 1
name: {name}
inputs:
  - name: orders
    kafka: {{topic: {name}.in, partitions: 1}}
    schema: "order_id BIGINT, customer STRING, amount DECIMAL(10,2), placed_at TIMESTAMP"
stages:
  - name: both
    inputs: [orders]
    trigger: {{processingTime: 100 milliseconds}}
    {limits}
    sinks:
      - {{name: kafka, kafka: {{topic: {name}.out, key: order_id, partitions: 1}}}}
      - {{name: iceberg, iceberg: {{table: raw.{table}}}}}
      - {{name: postgres, postgres: {{connection: warehouse, table: public.{table}}}}}
"""


class EverySink:
    def __init__(
        self,
        client: Client,
        stack: StackState,
        kafka: KafkaAdmin,
        catalog: SqlCatalog,
        *,
        limits: str = "",
    ) -> None:
        """`limits`: more of its stage in the manifest."""
        self.client = client
        self._limits = limits
        self._stack = stack
        self._kafka = kafka
        self._catalog = catalog
        self.name = f"every-{uuid.uuid4().hex[:8]}"
        self.topic = f"{self.name}.in"
        self.table = f"raw.{self.name.replace('-', '_')}"
        self.numbers = count()
        self.sent: list[int] = []
        self.apply()

    def apply(self) -> None:
        """Also again, after a deletion: a new pipeline of the same name."""
        manifest = MANIFEST.format(
            name=self.name, table=self.table.removeprefix("raw."), limits=self._limits
        )
        done = self.client.operation(self.client.apply(manifest).id, wait_s=START_TIMEOUT_S)
        assert done.state == "done", done.errors
        self.uid = str(self.client.pipeline(self.name).uid)

    def send(self, size: int, client: Client | None = None) -> str:
        """Send the next orders; `client`: that of another thread."""
        numbers = [next(self.numbers) for _ in range(size)]
        self.sent += numbers
        orders = [order(n) for n in numbers]
        return (client or self.client).send(self.name, "orders", orders).token

    def stop(self) -> None:
        done = self.client.operation(self.client.stop(self.name).id, wait_s=WAIT_S)
        assert done.state == "done", done.errors

    def start(self) -> None:
        done = self.client.operation(self.client.start(self.name).id, wait_s=START_TIMEOUT_S)
        assert done.state == "done", done.errors

    def refused_start(self) -> Fault:
        """Why a start fails, and what to do."""
        failed = self.client.operation(self.client.start(self.name).id, wait_s=WAIT_S)
        assert failed.state == "failed", failed
        return failed.errors[0]

    def restart(self, start_from: StartFrom | None = None) -> None:
        operation = self.client.restart(self.name, start_from)
        done = self.client.operation(operation.id, wait_s=START_TIMEOUT_S)
        assert done.state == "done", done.errors

    def await_failed(self) -> PipelineFailure:
        with pytest.raises(PipelineFailed) as failed:
            self.client.wait_pipeline(self.name, phase="Stopped", timeout_s=WAIT_S)
        assert failed.value.pipeline.error is not None
        return failed.value.pipeline.error

    def kill_driver(self) -> None:
        for process in drivers_of(self._stack, self.uid):
            process.send_signal(signal.SIGKILL)

    def checkpoint(self) -> Path:
        """The folder of Spark's checkpoint that is in use."""
        stage = self._stack.folder / "stage_runner" / self.uid / "checkpoints" / "both@1"
        (folder,) = [each for each in stage.iterdir() if "." not in each.name]
        return folder

    def asides(self) -> list[Path]:
        """Checkpoints that were left because they did not fit."""
        return sorted(self.checkpoint().parent.glob("*.aside-*"))

    def assert_once(self, token: str, *, with_lsn: bool = True) -> None:
        """The token completes, and every order that was ever sent is there once in both sinks.

        `with_lsn`: Postgres lived after the commit, and said where it is in its log.
        """
        outcome = self.client.wait(token, timeout_s=WAIT_S)
        assert outcome.kind == "complete"
        found = committed_orders(self._stack, self._kafka, f"{self.name}.out")
        assert found == self.sent, f"{found} instead of {self.sent}"
        (stage,) = outcome.stages
        assert not with_lsn or any(sink.postgres_lsn for sink in stage.sinks)
        snapshot_id = outcome.iceberg_snapshots["iceberg"]
        rows = self._catalog.load_table(self.table).scan(snapshot_id=snapshot_id).to_arrow()
        assert sorted(rows.column("order_id").to_pylist()) == sorted(self.sent)
        assert sorted(self.in_postgres()) == sorted(self.sent)

    def found(self) -> dict[str, list[int]]:
        """What is in each sink for who reads now."""
        rows = self._catalog.load_table(self.table).scan(selected_fields=("order_id",)).to_arrow()
        return {
            "kafka": committed_orders(self._stack, self._kafka, f"{self.name}.out"),
            "iceberg": rows.column("order_id").to_pylist(),
            "postgres": self.in_postgres(),
        }

    @property
    def postgres_table(self) -> str:
        return self.table.replace("raw.", "public.")

    def in_postgres(self) -> list[int]:
        table = self.postgres_table
        return [row[0] for row in Database.of(self._stack).ask(f"SELECT order_id FROM {table}")]
