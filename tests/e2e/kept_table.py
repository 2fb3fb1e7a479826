"""A pipeline whose rows go to one Iceberg table, others of which may write there too; what it has
sent, and readers that look at the table all the time."""

import threading
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, Final

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import DataScan, Table

from e2e.every_sink import START_TIMEOUT_S, WAIT_S
from waybill import Client, NotFound
from waybill_local.stack import StackState

READ_S: Final = 0.2  # between two looks of a reader
MANIFEST = """
version: 1
name: {name}
inputs:
  - name: orders
    kafka: {{topic: {name}.in, partitions: 1}}
    schema: "key BIGINT, value BIGINT"
stages:
  - name: load
    inputs: [orders]
    trigger: {{processingTime: 100 milliseconds}}
    steps: [{{name: taken, sql: "{sql}"}}]
    sinks:
      - name: lake
        iceberg: {{table: {table}, {more}}}
"""


def table_name() -> str:
    return f"raw.kept_{uuid.uuid4().hex[:8]}"


class Writer:
    """A pipeline, and the keys that it was given: each once, or again with a greater value."""

    def __init__(self, stack: StackState, catalog: SqlCatalog, table: str, number: int = 0) -> None:
        self.client = Client(stack.url)
        self.name = f"{table.removeprefix('raw.').replace('_', '-')}-{number}"
        self.table = table
        self.sent: dict[int, int] = {}
        self.first = number * 1_000_000
        self._catalog = catalog
        self._values = count()

    def apply(self, more: str, sql: str = "SELECT key, value FROM orders") -> None:
        text = MANIFEST.format(name=self.name, table=self.table, more=more, sql=sql)
        done = self.client.operation(self.client.apply(text).id, wait_s=START_TIMEOUT_S)
        assert done.state == "done", done.errors

    @property
    def uid(self) -> str:
        return str(self.client.pipeline(self.name).uid)

    def send(self, keys: Sequence[int]) -> str:
        """The token of these rows, which are in the table, once, for who reads it now."""
        rows = dict.fromkeys((self.first + key for key in keys), next(self._values))
        records = [{"key": key, "value": value} for key, value in rows.items()]
        token = self.client.send(self.name, "orders", records).token
        assert self.client.wait(token, timeout_s=WAIT_S).kind == "complete"
        found = rows_by_key(self._catalog.load_table(self.table))
        wrong = {row: found[row] for row in rows.items() if found[row] != 1}
        assert not wrong, f"{token} is complete; so often in the table: {wrong}"
        self.sent |= rows
        return token

    def snapshot_of(self, token: str) -> tuple[int, str | None]:
        """The snapshot that has the rows of the token, and what is said of it."""
        (stage,) = self.client.outcome(token).stages
        (sink,) = stage.sinks
        assert sink.version is not None
        return int(str(sink.version["iceberg_snapshot_id"])), sink.detail

    def end(self) -> None:
        with suppress(NotFound):  # nobody has applied it
            self.client.delete(self.name)
        self.client.close()


def rows_by_key(table: Table, snapshot_id: int | None = None) -> Counter[tuple[int, int]]:
    return counted(table.scan(snapshot_id=snapshot_id))


def counted(scan: DataScan) -> Counter[tuple[int, int]]:
    found = scan.to_arrow()
    keys, values = found.column("key").to_pylist(), found.column("value").to_pylist()
    return Counter(zip(keys, values, strict=True))


def once(sent: dict[int, int]) -> Counter[tuple[int, int]]:
    return Counter(sent.items())


def assert_whole(table: Table) -> None:
    """Each file that a snapshot names is there, and each snapshot can be read."""
    for snapshot in table.refresh().snapshots():
        for manifest in snapshot.manifests(table.io):
            for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
                assert Path(entry.data_file.file_path.removeprefix("file://")).exists()
        rows_by_key(table, snapshot.snapshot_id)


@contextmanager
def readers(catalog: SqlCatalog, name: str, *, may_change: bool = False) -> Iterator[None]:
    """Read the table from now on, as it is each time; no row is there twice, none goes again.

    `may_change`: values of a key.
    """
    end, faults, reads = threading.Event(), list[BaseException](), Counter[str]()

    def read() -> None:
        before: set[Any] = set()
        while not end.wait(READ_S):
            rows = rows_by_key(catalog.load_table(name))
            keys = Counter(key for key, _ in rows.elements())
            assert not [key for key, count in keys.items() if count > 1]
            now = set(keys) if may_change else set(rows)
            assert before <= now
            before = now
            reads["all"] += 1

    def run() -> None:
        try:
            read()
        except BaseException as error:  # noqa: BLE001 - raised again by who waits for it
            faults.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()
    if faults:
        raise faults[0]
    assert reads["all"] > 1
