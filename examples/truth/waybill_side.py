"""A Waybill pipeline that does what the ordinary program does, and what Waybill says of it."""

import signal
from pathlib import Path
from typing import Final

from pyiceberg.catalog.sql import SqlCatalog

from examples.truth import bare
from examples.truth.waiting import until
from waybill import Client, Operation, Outcome, PipelineFailed, Span
from waybill_local.stack import StackState
from waybill_shared.process.failpoints import REACHED
from waybill_stage_runner.adapters.groups import groups_with, signal_group

WAIT_S: Final = 120.0  # each includes a start of Spark
STAGE: Final = "load"
SINK: Final = "lake"
MANIFEST: Final = """
version: 1
name: {name}
state: stopped
inputs:
  - name: orders
    kafka: {{topic: {topic}, partitions: 1}}
    schema: "{columns}"
stages:
  - name: {stage}
    inputs: [orders]
    trigger: {{processingTime: 100 milliseconds}}
    sinks:
      - {{name: {sink}, iceberg: {{table: {table}}}}}
"""


class WaybillSide:
    """One pipeline. It is applied as stopped, so that what comes first comes in one batch."""

    def __init__(self, client: Client, stack: StackState, failpoints: Path, topic: str) -> None:
        self._client = client
        self._stack = stack
        self._failpoints = failpoints
        self._name = topic
        self._table = f"truth.{topic}"
        manifest = MANIFEST.format(
            name=topic,
            topic=topic,
            columns=bare.COLUMNS,
            stage=STAGE,
            sink=SINK,
            table=self._table,
        )
        self.done(client.apply(manifest))
        self._uid = str(client.pipeline(topic).uid)

    def token(self, span: Span) -> str:
        return self._client.token_for(self._name, positions=[span]).token

    def start(self) -> Operation:
        """Returns at once; see `done` and `failure`."""
        return self._client.start(self._name)

    def stop(self) -> Operation:
        return self._client.stop(self._name)

    def restart_from_earliest(self) -> Operation:
        return self._client.restart(self._name, "earliest")

    def done(self, operation: Operation) -> None:
        ended = self._client.operation(operation.id, wait_s=WAIT_S)
        if ended.state != "done":
            raise PipelineFailed(_why(ended), pipeline=self._client.pipeline(ended.pipeline))

    def failure(self, operation: Operation) -> str:
        """Why the pipeline came to stand, at its start or soon after."""
        ended = self._client.operation(operation.id, wait_s=WAIT_S)
        if ended.failed:
            return _why(ended)
        try:
            pipeline = self._client.wait_pipeline(self._name, "Stopped", timeout_s=WAIT_S)
        except PipelineFailed as failed:
            pipeline = failed.pipeline
        return pipeline.error.message if pipeline.error else f"nothing: it is {pipeline.phase}"

    def wait(self, token: str) -> Outcome:
        return self._client.wait(token, timeout_s=WAIT_S)

    def hold_after_commit(self) -> None:
        """Let the driver halt when its next rows are committed and nobody knows of it."""
        self._point().touch()

    def kill_held_driver(self) -> None:
        point = self._point()
        reached = point.with_name(point.name + REACHED)
        until(reached.exists, "rows that are committed", within_s=WAIT_S)
        drivers = self._stack.folder / "stage_runner" / "drivers"
        for note in drivers.glob(f"*/runs/{self._uid}"):
            home = note.parent.parent / "home.json"
            for group in groups_with(str(home).__eq__):
                signal_group(group, signal.SIGKILL, whole=True)

    def numbers(self, outcome: Outcome | None = None) -> list[int | None]:
        """The column `order_id` of all rows of the table, or of the snapshot that a token names."""
        catalog = SqlCatalog(
            "lakehouse", uri=f"sqlite:///{self._stack.folder}/lakehouse/catalog.db"
        )
        snapshot_id = outcome.iceberg_snapshots.get(SINK) if outcome else None
        scan = catalog.load_table(self._table).scan(
            selected_fields=("order_id",), snapshot_id=snapshot_id
        )
        column = scan.to_arrow().column("order_id")
        return [value if value is None else int(value) for value in column.to_pylist()]

    def _point(self) -> Path:
        return self._failpoints / f"{self._uid}.{SINK}.after_commit"


def blocked_by(outcome: Outcome) -> str | None:
    return next((stage.blocked_by for stage in outcome.stages if stage.blocked_by), None)


def _why(operation: Operation) -> str:
    return "; ".join(fault.message for fault in operation.errors) or operation.state
