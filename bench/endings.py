"""R46 to R48: a run that ends by itself, by `availableNow`: over nothing, and over many records.

In R47 and R48 each side has a session that is ready and has read nothing yet, another one in each
round, and records that wait in Kafka: ours from `start` until `Finished`, theirs from the start of
the query until it has ended. A session that has read many records is several times as fast.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from subprocess import Popen
from typing import Final, Literal

from confluent_kafka import Producer
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

from bench.big import R31
from bench.contest import Contest, Turn, Turns
from bench.lifecycle import OURS_OF_R17
from bench.peers.ending import TABLE, EndingSpec
from bench.pipelines import COLUMNS, PARTITIONS, QUERY, order, program, spark_spec
from bench.starts import Pipelines, pipelines
from bench.surroundings import Surroundings
from bench.throughput import R3
from waybill_local import jars
from waybill_shared.kafka.admin import make_admin
from waybill_shared.kafka.clients import make_producer, produce_and_wait
from waybill_spark.sinks.iceberg.catalogs import open_local

RECORDS: Final = 1_000_000
FLUSH_S: Final = 120.0
TIMEOUT_S: Final = 300.0
POLL_S: Final = 0.01
PEER: Final = "peer"
LOCAL: Final = "bench"  # the name of a catalog for whoever reads it here
OFFSETS_MAX: Final = {"kafka": 50_000, "iceberg": 500_000}
"""In a batch, of both sides: as manifests have it by default; as R31 has it."""
SINKS: Final = {
    "kafka": "kafka: {{topic: {name}.out, partitions: {partitions}}}",
    "iceberg": "iceberg: {{table: {table}}}",
}
Sink = Literal["kafka", "iceberg"]
MANIFEST: Final = """
version: 1
name: {name}
inputs:
  - name: orders
    kafka: {{topic: {name}.in, partitions: {partitions}}}
    format: json
    schema: "{columns}"
stages:
  - name: enrich
    inputs: [orders]
    trigger: {{availableNow: true}}
    maxOffsetsPerTrigger: {offsets_max}
    steps: [{{name: enriched, sql: "{query}"}}]
    sinks: [{{name: out, {sink}}}]
"""


def ending(name: str, sink: Sink = "kafka") -> str:
    into = SINKS[sink].format(name=name, partitions=PARTITIONS, table=table_of(name))
    return MANIFEST.format(
        name=name,
        partitions=PARTITIONS,
        columns=COLUMNS,
        query=QUERY,
        offsets_max=OFFSETS_MAX[sink],
        sink=into,
    )


def table_of(name: str) -> str:
    return f"raw.{name.replace('-', '_')}"


@dataclass(frozen=True, slots=True)
class Ending:
    """A pipeline that has ended by itself."""

    pipelines: Pipelines
    name: str

    def run(self) -> float:
        """Measure from `start` until `Finished`."""
        self.pipelines.settle()
        before = self.pipelines.look_at(self.name)["run"]
        began = time.perf_counter()
        self.pipelines.act(self.name, "start")
        self.await_finished(before + 1)
        return time.perf_counter() - began

    def await_finished(self, run: int) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        answer = self.pipelines.look_at(self.name)
        while (answer["phase"], answer["run"]) != ("Finished", run):
            assert time.monotonic() < deadline, f"it does not finish: {answer}"
            time.sleep(POLL_S)
            answer = self.pipelines.look_at(self.name)


@contextmanager
def make_ending(around: Surroundings, sink: Sink = "kafka") -> Iterator[Ending]:
    """Yield a pipeline that has read one record, and has finished."""
    with (
        pipelines(around, spares=1) as ours,
        ours.one(text=partial(ending, sink=sink)) as name,
    ):
        one = Ending(ours, name)
        one.await_finished(1)
        produce_and_wait(make_producer(around.kafka), f"{name}.in", "1", order(1))
        one.run()
        yield one


def run(peer: "Popen[bytes]") -> float:
    """Let a PySpark program read what there is."""
    assert peer.stdin is not None
    assert peer.stdout is not None
    began = time.perf_counter()
    peer.stdin.write(b"\n")
    peer.stdin.flush()
    assert peer.stdout.readline(), "the PySpark program ended"
    return time.perf_counter() - began


@contextmanager
def over_nothing(around: Surroundings) -> Iterator[Turns]:
    with make_ending(around) as one:
        yield Turns(ours=one.run, theirs=one.pipelines.create)


@contextmanager
def over_many(around: Surroundings, sink: Sink) -> Iterator[Turns]:
    lakehouse = around.folder / "peer-lakehouse"
    iceberg = tuple(map(str, jars.jar_set(jars.ICEBERG).class_path)) if sink == "iceberg" else ()
    spec = EndingSpec(
        spark=spark_spec(around, "tuned", PEER, iceberg),
        offsets_max=OFFSETS_MAX[sink],
        lakehouse=str(lakehouse) if sink == "iceberg" else None,
    )
    bare = open_local(lakehouse, LOCAL).tables
    own = open_local(around.folder / "lakehouse", LOCAL).tables

    def bare_run() -> float:
        log_file = around.folder / "peer.log"
        with program("bench.peers.ending", json.dumps(asdict(spec)), log_file) as peer:
            return run(peer)

    with make_ending(around, sink) as one:
        ours = partial(rows_of, own, table_of(one.name))
        theirs = partial(rows_of, bare, TABLE)
        if sink == "kafka":
            ours, theirs = (partial(offsets_of, around, f"{each}.out") for each in (one.name, PEER))
        yield Turns(
            ours=lambda: rate(around, f"{one.name}.in", one.run, ours),
            theirs=lambda: rate(around, spec.spark.source, bare_run, theirs),
        )


def rate(around: Surroundings, topic: str, read: Turn, written: Callable[[], int]) -> float:
    """Return how many records a second it reads of those that are in Kafka before."""
    before = written()
    fill(around, topic)
    spent = read()
    assert written() - before >= RECORDS, "it has not written all"
    return RECORDS / spent


def fill(around: Surroundings, topic: str) -> None:
    options = {"bootstrap.servers": around.kafka, "queue.buffering.max.messages": RECORDS}
    producer = Producer({**options, "linger.ms": 50})
    for number in range(RECORDS):
        value = b'{"order_id": %d, "customer": "ada", "amount": 12.5}' % number
        producer.produce(topic, value=value, partition=number % PARTITIONS)
    assert producer.flush(FLUSH_S) == 0


def offsets_of(around: Surroundings, topic: str) -> int:
    return sum(make_admin(around.kafka).ends(topic, range(PARTITIONS)).values())


def rows_of(catalog: Catalog, table: str) -> int:
    try:
        newest = catalog.load_table(table).current_snapshot()
    except (NoSuchTableError, NoSuchNamespaceError):
        return 0
    if newest is None or newest.summary is None:
        return 0
    return int(newest.summary["total-records"] or 0)


R46 = Contest(
    key="R46",
    what="a pipeline that ends by itself runs, and there is nothing to read",
    ours="availableNow: from start until Finished",
    theirs=OURS_OF_R17,
    unit="s",
    target=1.5,
    begin=over_nothing,
)
R47 = Contest(
    key="R47",
    what=f"{RECORDS:,} records by availableNow into a topic, {OFFSETS_MAX['kafka']:,} in a batch",
    ours="Waybill: from start until Finished",
    theirs="PySpark with Waybill's settings and Spark's own sink, no tokens, no transaction",
    unit="/s",
    target=0.69,
    target_of=R3,
    begin=partial(over_many, sink="kafka"),
)
R48 = Contest(
    key="R48",
    what=f"{RECORDS:,} records by availableNow into an Iceberg table,"
    f" {OFFSETS_MAX['iceberg']:,} in a batch",
    ours="Waybill: from start until Finished",
    theirs="PySpark with Waybill's settings and Iceberg's own sink, no tokens",
    unit="/s",
    target=0.5,
    target_of=R31,
    begin=partial(over_many, sink="iceberg"),
)
