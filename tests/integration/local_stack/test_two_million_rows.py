"""Two million rows in one batch, by a driver that has half a gigabyte for Java and for Python."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from e2e.waiting import eventually, leaders_of
from waybill import Client
from waybill_local import stack
from waybill_local.stack import Options, StackState
from waybill_shared.kafka.clients import make_producer

START_TIMEOUT_S = 120.0
WAIT_S = 240.0
RECORDS = 2_000_000
MEMORY = 512 << 20
RECORD = '{"order_id": %d, "customer": "customer-%d", "amount": "%d.25"}'
POLL_S = 0.2
MANIFEST = """
version: 1
name: orders
inputs:
  - name: orders
    kafka: {topic: orders.in, partitions: 2}
    schema: "order_id BIGINT, customer STRING, amount DECIMAL(10,2)"
stages:
  - name: load
    inputs: [orders]
    READING
    sinks:
      - {name: lake, iceberg: {table: raw.orders}}
"""


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StackState]:
    monkeypatch.setenv("WAYBILL_SPARK_DRIVER_MEMORY", "512m")
    options = Options(gateway_port=0, kafka_port=0, valkey_port=0)
    reports: list[stack.Report] = []
    try:
        yield stack.up(tmp_path, reports.append, options=options, tied=True)
    finally:
        stack.down(tmp_path, reports.append)


@pytest.mark.timeout(480)
@pytest.mark.parametrize(
    "reading",
    [f"maxOffsetsPerTrigger: {RECORDS + 1_000}", "trigger: {once: true}"],
    ids=["as it comes", "once"],
)
def test_two_million_rows_of_one_batch_need_no_more_memory_than_few(
    state: StackState, reading: str
) -> None:
    manifest = MANIFEST.replace("READING", reading) + "state: stopped\n"
    with Client(state.url) as client:
        done = client.operation(client.apply(manifest).id, wait_s=START_TIMEOUT_S)
        assert done.state == "done", done.errors
        uid = str(client.pipeline("orders").uid)
        produce(state)
        token = client.token_for("orders", input="orders").token
        client.start("orders")
        eventually(lambda: leaders_of(state, uid), within_s=START_TIMEOUT_S)
        with watched(leaders_of(state, uid)[0]) as most:
            assert client.wait(token, timeout_s=WAIT_S).kind == "complete"
        if "once" in reading:
            client.wait_pipeline("orders", "Finished", WAIT_S)
    assert 0 < most[0] < MEMORY, f"{most[0] >> 20} MiB"

    uri = f"sqlite:///{state.folder / 'lakehouse' / 'catalog.db'}"
    table = SqlCatalog("lakehouse", uri=uri).load_table("raw.orders")
    assert len([*table.snapshots()]) == 1, "it is one batch"
    numbers = table.scan(selected_fields=("order_id",)).to_arrow().column("order_id")
    assert (len(numbers), len(numbers.unique())) == (RECORDS, RECORDS)


def produce(state: StackState) -> None:
    producer = make_producer(state.kafka, **{"compression.type": "lz4", "linger.ms": 50})
    for number in range(RECORDS):
        value = RECORD % (number, number % 1_000, number % 97)
        while True:
            try:
                producer.produce("orders.in", value=value.encode(), partition=number % 2)
                break
            except BufferError:
                producer.poll(POLL_S)
    assert producer.flush(WAIT_S) == 0


@contextmanager
def watched(driver: psutil.Process) -> Iterator[list[int]]:
    """The most memory that a process has had; of what it has started nothing."""
    most, enough = [0], threading.Event()

    def watch() -> None:
        while not enough.wait(POLL_S):
            most[0] = max(most[0], driver.memory_info().rss)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield most
    finally:
        enough.set()
        thread.join()
