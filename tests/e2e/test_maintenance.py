"""A driver that is killed in the middle of a task of its table: nothing is lost, and it is done."""

import json
import uuid
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

from e2e.conftest import Pipeline
from e2e.every_sink import START_TIMEOUT_S, WAIT_S
from e2e.faults import kill
from e2e.waiting import drivers_of, eventually
from waybill import Client, Invalid
from waybill_local.stack import StackState
from waybill_shared.contract.words import EventType
from waybill_shared.process.failpoints import REACHED

BATCHES = 22  # so many manifests are too many
MANIFEST = """
version: 1
name: {name}
inputs: [{{name: orders, kafka: {{topic: {name}.in, partitions: 1}}, schema: "order_id BIGINT"}}]
stages:
  - name: load
    inputs: [orders]
    trigger: {{processingTime: 100 milliseconds}}
    maxOffsetsPerTrigger: 1
    sinks: [{{name: lake, iceberg: {{table: {table}{more}}}}}]
"""


class Kept:
    """A pipeline whose table has become untidy."""

    def __init__(self, client: Client, stack: StackState, catalog: SqlCatalog) -> None:
        self.client = client
        self.name = f"kept-{uuid.uuid4().hex[:8]}"
        self.table_name = f"raw.{self.name.replace('-', '_')}"
        self._stack = stack
        self._catalog = catalog
        self._numbers = count()
        self.apply()
        self.uid = str(client.pipeline(self.name).uid)
        self.send(BATCHES)

    def apply(self, more: str = "") -> None:
        text = MANIFEST.format(name=self.name, table=self.table_name, more=more)
        done = self.client.operation(self.client.apply(text).id, wait_s=START_TIMEOUT_S)
        assert done.state == "done", done.errors

    def send(self, records: int = 1) -> str:
        """Each is a batch of its own. Their token, when all have arrived."""
        rows = [{"order_id": next(self._numbers)} for _ in range(records)]
        token = self.client.send(self.name, "orders", rows).token
        assert self.client.wait(token, timeout_s=WAIT_S).kind == "complete"
        return token

    def stop(self) -> None:
        done = self.client.operation(self.client.stop(self.name).id, wait_s=WAIT_S)
        assert done.state == "done", done.errors

    def version_of(self, token: str) -> tuple[int, str | None]:
        """The snapshot that the table had then, and what is said beside it."""
        (stage,) = self.client.outcome(token).stages
        (sink,) = stage.sinks
        assert sink.version is not None
        return int(str(sink.version["iceberg_snapshot_id"])), sink.detail

    def maintain(self, *, dry_run: bool = False) -> dict[str, Any]:
        taken = self.client.maintain(self.name, "lake", dry_run=dry_run)
        done = self.client.operation(taken.id, wait_s=WAIT_S) if taken.pending else taken
        assert done.state == "done", done.errors
        assert done.result is not None
        return dict(done.result)

    def kill_driver(self) -> None:
        kill(drivers_of(self._stack, self.uid))

    @property
    def told(self) -> list[str]:
        """Tasks of which others were told: those that had something to do."""
        asked = urlencode({"pipeline": self.name, "type": EventType.TABLE_MAINTAINED})
        with urlopen(f"{self._stack.url}/v1/events?{asked}", timeout=WAIT_S) as answer:
            return [event["data"]["task"] for event in json.load(answer)["items"]]

    @property
    def table(self) -> Table:
        return self._catalog.load_table(self.table_name)

    def assert_once(self) -> None:
        found = self.table.scan().to_arrow().column("order_id").to_pylist()
        assert sorted(found) == [*range(next(self._numbers))]


@pytest.fixture
def kept(client: Client, stack: StackState, catalog: SqlCatalog) -> Iterator[Kept]:
    made = Kept(client, stack, catalog)
    yield made
    client.delete(made.name)


def test_a_table_is_kept_in_order_when_somebody_asks_for_it(kept: Kept) -> None:
    kept.apply(", maintenance: {compact: {every: 300 days}, rewriteManifests: {every: 300 days}}")
    done = "waybill.maintained.rewriteManifests"
    eventually(lambda: done in kept.table.properties, within_s=WAIT_S)
    kept.send(BATCHES)
    files = len(kept.table.inspect.files())

    told = kept.maintain(dry_run=True)
    assert told["dry_run"] is True
    assert told["tasks"]["compact"] == {"files": files, "into": 1}
    assert len(kept.table.inspect.files()) == files

    told = kept.maintain()
    assert told["tasks"]["compact"] == {"files": files, "into": 1}
    assert len(kept.table.inspect.files()) == 1
    kept.send()
    kept.stop()
    assert set(kept.maintain()["tasks"]) == {"compact", "rewriteManifests"}
    kept.assert_once()
    eventually(
        lambda: kept.told == ["compact", "compact"], within_s=WAIT_S
    )  # of driver and maintain


def test_a_token_of_a_stopped_pipeline_says_that_its_version_is_gone(kept: Kept) -> None:
    kept.apply(", maintenance: {compact: {every: 300 days}}")
    token, last = kept.send(), kept.send()
    kept.stop()
    version, named = kept.version_of(token), kept.version_of(last)
    assert (version[1], named[1]) == (None, None)

    ids = [each.snapshot_id for each in kept.table.snapshots()]
    kept.table.maintenance.expire_snapshots().by_ids(ids[: ids.index(version[0]) + 1]).commit()
    kept.maintain()
    eventually(lambda: kept.version_of(token) == (version[0], "version_expired"), within_s=WAIT_S)
    assert kept.version_of(last) == named
    kept.assert_once()


def test_what_cannot_be_kept_in_order_is_refused(client: Client, orders: Pipeline) -> None:
    with pytest.raises(Invalid, match="its manifest names no task"):
        client.maintain(orders.name, "lake")
    with pytest.raises(Invalid, match="there is no sink river"):
        client.maintain(orders.name, "river")


@pytest.mark.parametrize(
    ("task", "point"), [("compact", "compact"), ("rewriteManifests", "rewrite")]
)
def test_a_driver_killed_in_the_middle_of_a_task_loses_nothing(
    kept: Kept, failpoints: Path, task: str, point: str
) -> None:
    armed = failpoints / f"{kept.table_name}.{point}"
    armed.touch()
    kept.apply(f", maintenance: {{{task}: {{every: 1 minute}}}}")
    reached = armed.with_name(armed.name + REACHED)
    eventually(reached.exists, within_s=WAIT_S)
    assert len(kept.table.inspect.files()) == BATCHES
    kept.kill_driver()
    reached.unlink()

    kept.send()
    done = f"waybill.maintained.{task}"
    eventually(lambda: done in kept.table.properties, within_s=WAIT_S)

    kept.send()
    kept.assert_once()
    snapshot = kept.table.current_snapshot()
    assert snapshot is not None
    tidy = (
        len(kept.table.inspect.files())
        if task == "compact"
        else len(snapshot.manifests(kept.table.io))
    )
    assert tidy < BATCHES // 2
