"""R22, R23: what a sink costs, and several at once, compared with the bare way to that place."""

import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal

import psycopg
import pyarrow as pa
from confluent_kafka import Producer
from psycopg import sql
from pyarrow import csv

from bench.contest import Contest, Turn, Turns
from bench.facts import report_of
from bench.http import Http
from bench.pipelines import COLUMNS, QUERY, await_done, order, services
from bench.surroundings import Surroundings
from waybill_local import postgres
from waybill_local.ports import HOST, pick
from waybill_local.processes import start, stop, wait_ready
from waybill_shared.contract.events import Fence
from waybill_shared.contract.manifest.sinks import PostgresSinkSettings
from waybill_shared.databases import PostgresConnection
from waybill_spark.sinks.postgres.sink import PostgresSink
from waybill_spark.sinks.postgres.tables import PostgresTarget
from waybill_spark.tracking.sink import SinkLife

ROWS = 100_000
BATCH_ROWS = 10_000  # as Spark hands them over
TIMEOUT_S = 180
SINKS = {
    "kafka": "kafka: {topic: NAME.out, partitions: 4}",
    "iceberg": "iceberg: {table: raw.NAME}",
    "postgres": "postgres: {connection: warehouse, table: public.NAME}",
}
FEW = 1_000  # a batch as it is while records come one by one
MANIFEST = """
version: 1
name: NAME
inputs: [{{name: orders, kafka: {{topic: NAME.in, partitions: 4}}, schema: "{columns}"}}]
stages:
  - name: load
    inputs: [orders]
    trigger: {{processingTime: 100 milliseconds}}
    maxOffsetsPerTrigger: {rows}
    steps: [{{name: enriched, sql: "{query}"}}]
    sinks:
"""
SCHEMA = pa.schema(
    [("order_id", pa.int64()), ("customer", pa.string()), ("amount", pa.decimal128(10, 2))]
)
TABLE = "(order_id bigint{key}, customer text, amount numeric(10,2))"
COPY = "COPY bare_load FROM STDIN (FORMAT csv)"
INSERT = "INSERT INTO public.bare SELECT * FROM bare_load"
NEWER = (
    " ON CONFLICT (order_id) DO UPDATE SET customer = EXCLUDED.customer, amount = EXCLUDED.amount"
)


@contextmanager
def database(around: Surroundings) -> Iterator[postgres.Server]:
    port = pick({postgres.NAME: 0})[postgres.NAME]
    server = postgres.Server(around.folder / postgres.NAME, port)
    child = start(postgres.spec(server), around.folder)
    try:
        wait_ready([child], interrupted=lambda: False, on_ready=lambda ready: None)
        yield server
    finally:
        stop([child], forced=lambda: False, on_stopped=lambda stopped, graceful: None)


@dataclass(slots=True)
class Bare:
    """As anybody writes it with psycopg: the quickest that takes Arrow."""

    session: psycopg.Connection
    insert: str

    def write(self, batches: Sequence[pa.RecordBatch]) -> None:
        with self.session.transaction(), self.session.cursor() as cursor:
            cursor.execute(
                "CREATE TEMPORARY TABLE IF NOT EXISTS bare_load ON COMMIT DELETE ROWS"
                " AS SELECT * FROM public.bare WITH NO DATA"
            )
            for batch in batches:
                out = pa.BufferOutputStream()
                csv.write_csv(batch, out, csv.WriteOptions(include_header=False))
                with cursor.copy(COPY) as to:
                    to.write(memoryview(out.getvalue()))
            cursor.execute(self.insert.encode())


@contextmanager
def against_bare(around: Surroundings, mode: str) -> Iterator[Turns]:
    upsert = mode == "upsert"
    with database(around) as server, psycopg.connect(server.url, autocommit=True) as session:
        key = " PRIMARY KEY" if upsert else ""
        for table in ("ours", "bare"):
            ddl = f"CREATE TABLE public.{table} {TABLE.format(key=key)}"
            session.execute(ddl.encode())
        sink = sink_in(server, mode)
        bare = Bare(session, INSERT + (NEWER if upsert else ""))
        fences = fences_of_one()

        def rate(write: Callable[[list[pa.RecordBatch]], object], table: str) -> Turn:
            def turn() -> float:
                if not upsert:
                    session.execute(sql.SQL("TRUNCATE {}").format(sql.Identifier(table)))
                session.execute("CHECKPOINT")
                began = time.perf_counter()
                write(batches())
                return ROWS / (time.perf_counter() - began)

            return turn

        with closing(sink):
            yield Turns(
                ours=rate(lambda rows: sink.write(rows, next(fences)), "ours"),
                theirs=rate(bare.write, "bare"),
            )


def sink_in(server: postgres.Server, mode: str) -> PostgresSink:
    settings = PostgresSinkSettings.model_validate(
        {
            "connection": server.connection,
            "table": "public.ours",
            "mode": mode,
            "keys": ["order_id"] if mode == "upsert" else [],
        }
    )
    connection = PostgresConnection.model_validate(
        {
            "kind": "postgres",
            "host": HOST,
            "port": server.port,
            "database": postgres.DATABASE,
            "user": postgres.USER,
            "password": {"file": server.password_file},
        }
    )
    target = PostgresTarget(sink="people", settings=settings)
    life = SinkLife(name="people", since=1, fence_key="bench/people@1")
    sink = PostgresSink(life, target, connection, schema=SCHEMA)
    sink.claim()
    sink.last()
    return sink


def batches() -> list[pa.RecordBatch]:
    rows = {
        "order_id": range(ROWS),
        "customer": [f"customer {number % 1_000}" for number in range(ROWS)],
        "amount": [Decimal(number % 100_000) / 100 for number in range(ROWS)],
    }
    table = pa.table({name: [*values] for name, values in rows.items()}, schema=SCHEMA)
    return [*table.to_batches(max_chunksize=BATCH_ROWS)]


def fences_of_one() -> Iterator[Fence]:
    fence = Fence(
        tenant="default",
        pipeline_uid="bench",
        stage="load",
        sink="people",
        generation=1,
        epoch=1,
        batch=replace(report_of(0, at=0), sequence=-1, rows=ROWS),
        inputs=(),
        frontier={},
        outputs=(),
    )
    while True:
        batch = replace(fence.batch, sequence=fence.batch.sequence + 1)
        fence = replace(fence, batch=batch)
        yield fence


@dataclass(frozen=True, slots=True)
class Batch:
    """One pipeline; how long a batch takes until all its sinks have it."""

    name: str
    ingress: Http
    status: Http
    producer: Producer
    rows: int

    def seconds(self) -> float:
        for number in range(self.rows):
            self.producer.produce(f"{self.name}.in", value=order(number))
        began = time.perf_counter()
        self.producer.flush()
        made = self.ingress.post("/v1/tokens", {"pipeline": self.name, "input": "orders"})
        assert isinstance(made, dict)
        answer = self.status.ask("GET", f"/v1/tokens/{made['token']}?wait=60")
        while isinstance(answer, dict) and answer["outcome"] == "in_progress":
            if time.perf_counter() - began > TIMEOUT_S:
                raise TimeoutError(f"{self.name}: {answer}")
            answer = self.status.ask("GET", f"/v1/tokens/{made['token']}?wait=60")
        assert isinstance(answer, dict)
        assert answer["outcome"] == "complete", answer
        return time.perf_counter() - began


@contextmanager
def together(around: Surroundings, rows: int, slowest: str) -> Iterator[Turns]:
    with ExitStack() as stack:
        server = stack.enter_context(database(around))
        file = around.folder / "connections.yaml"
        file.write_text(postgres.connections(server))
        environment = {**around.environment, "WAYBILL_CONNECTIONS_FILE": str(file)}
        urls = stack.enter_context(services(replace(around, environment=environment)))
        ingress, status = (
            stack.enter_context(closing(Http(urls[name]))) for name in ("ingress", "status")
        )

        def batch(*sinks: str) -> Batch:
            name = f"{'_'.join(sinks)}_{uuid.uuid4().hex[:6]}"
            text = MANIFEST.format(columns=COLUMNS, query=QUERY, rows=ROWS)
            text += "".join(f"      - {{name: {sink}, {SINKS[sink]}}}\n" for sink in sinks)
            text = text.replace("NAME", name)
            answer = ingress.ask(
                "PUT", f"/v1/pipelines/{name}?wait=0", text.encode(), "application/yaml"
            )
            assert isinstance(answer, dict)
            await_done(status, answer["operation"])
            options = {"bootstrap.servers": around.kafka, "queue.buffering.max.messages": ROWS}
            producer = Producer({**options, "linger.ms": 5})
            return Batch(name, ingress, status, producer, rows)

        alone = {sink: batch(sink) for sink in SINKS if sink != slowest}
        yield Turns(
            ours=batch(*SINKS).seconds,
            theirs=batch(slowest).seconds,
            also={sink: each.seconds for sink, each in alone.items()},
        )


R22 = Contest(
    key="R22",
    what=f"{ROWS:,} rows into a table of Postgres, from Arrow",
    ours="Waybill's sink, with its fence",
    theirs="psycopg: COPY and INSERT in one transaction",
    unit="/s",
    target=0.85,
    begin=lambda around: against_bare(around, "append"),
)
R22U = Contest(
    key="R22u",
    what=f"{ROWS:,} rows into a table of Postgres that has their keys, from Arrow",
    ours="Waybill's sink: the last row of each key, with its fence",
    theirs="psycopg: COPY and INSERT … ON CONFLICT in one transaction",
    unit="/s",
    target=0.8,
    begin=lambda around: against_bare(around, "upsert"),
)
R23F = Contest(
    key="R23f",
    what=f"a batch of {ROWS:,} records, until their token is complete",
    ours="into Kafka, Iceberg and Postgres",
    theirs="into Kafka alone, the slowest of them",
    unit="s",
    target=1.2,
    begin=lambda around: together(around, ROWS, "kafka"),
)
