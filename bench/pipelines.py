"""One pipeline of Waybill and one PySpark program that do the same, each with topics of its own."""

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from confluent_kafka.admin import NewTopic

from bench.http import Http
from bench.peers.spark import SparkSpec
from bench.surroundings import Surroundings, await_ready, child, service
from waybill_shared.kafka.admin import make_admin
from waybill_shared.kafka.topics import create_missing

START_TIMEOUT_S = 120
PARTITIONS = 4
COLUMNS = "order_id BIGINT, customer STRING, amount DECIMAL(10,2)"
QUERY = "SELECT *, amount * 0.2 AS tax FROM orders"
MANIFEST = """
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
    steps: [{{name: enriched, sql: "{query}"}}]
    sinks: [{{name: out, from: enriched, kafka: {{topic: {name}.out, partitions: {partitions}}}}}]
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPair:
    """From one topic to another, whoever carries the records."""

    source: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Waybill:
    """A running pipeline `name`, and where to ask of it."""

    name: str
    ingress: str
    status: str
    way: TopicPair


def order(number: int) -> bytes:
    return json.dumps({"order_id": number, "customer": "ada", "amount": 12.5}).encode()


@contextmanager
def services(around: Surroundings) -> Iterator[dict[str, str]]:
    """All of them, ready: the URL of each by its name."""
    with ExitStack() as stack:
        urls = {
            each: stack.enter_context(service(each, around))
            for each in ("ingress", "status", "token_tracker", "stage_runner")
        }
        for url in urls.values():
            await_ready(url)
        yield urls


@contextmanager
def waybill(around: Surroundings, more: str = "") -> Iterator[Waybill]:
    """All services, and a pipeline that runs; `more` of its manifest."""
    with services(around) as urls:
        yield running(urls, more=more)


def running(urls: dict[str, str], *, query: str = QUERY, more: str = "") -> Waybill:
    name = f"orders-{uuid.uuid4().hex[:8]}"
    with closing(Http(urls["ingress"])) as ingress, closing(Http(urls["status"])) as status:
        apply(ingress, status, name, query=query, more=more)
    way = TopicPair(source=f"{name}.in", target=f"{name}.out")
    return Waybill(name=name, ingress=urls["ingress"], status=urls["status"], way=way)


def manifest(name: str, query: str = QUERY) -> str:
    return MANIFEST.format(name=name, partitions=PARTITIONS, columns=COLUMNS, query=query)


def apply(
    ingress: Http,
    status: Http,
    name: str,
    *,
    query: str = QUERY,
    more: str = "",
) -> None:
    apply_text(ingress, status, name, manifest(name, query) + more)


def apply_text(ingress: Http, status: Http, name: str, text: str) -> None:
    path = f"/v1/pipelines/{name}?wait=0"
    answer = ingress.ask("PUT", path, text.encode(), "application/yaml")
    assert isinstance(answer, dict)
    await_done(status, answer["operation"])


def await_done(status: Http, operation: str) -> None:
    answer = status.ask("GET", f"/v1/operations/{operation}?wait=30")
    for _ in range(START_TIMEOUT_S // 30):
        assert isinstance(answer, dict)
        if answer["state"] == "done":
            return
        assert answer["state"] == "pending", answer
        answer = status.ask("GET", f"/v1/operations/{operation}?wait=30")
    raise TimeoutError(f"operation {operation} is not done after {START_TIMEOUT_S} s: {answer}")


@contextmanager
def pyspark(around: Surroundings, profile: Literal["plain", "tuned"]) -> Iterator[TopicPair]:
    name = f"{profile}-{uuid.uuid4().hex[:8]}"
    spec = spark_spec(around, profile, name)
    with program("bench.peers.spark", json.dumps(asdict(spec)), around.folder / f"{name}.log"):
        yield TopicPair(source=spec.source, target=spec.target)


def spark_spec(
    around: Surroundings, profile: Literal["plain", "tuned"], name: str, more: tuple[str, ...] = ()
) -> SparkSpec:
    """Make the topics of a PySpark program, and say what it does."""
    source, target = f"{name}.in", f"{name}.out"
    topics = [NewTopic(topic, PARTITIONS, 1) for topic in (source, target)]
    create_missing(make_admin(around.kafka), topics)
    return SparkSpec(
        profile=profile,
        kafka=around.kafka,
        source=source,
        target=target,
        columns=COLUMNS,
        query=QUERY,
        folder=str(around.folder / name),
        java=around.environment["WAYBILL_STAGE_RUNNER_JAVA"],
        jars=around.environment["WAYBILL_STAGE_RUNNER_SPARK_JARS"],
        archives=around.environment["WAYBILL_STAGE_RUNNER_SPARK_ARCHIVES"],
        more=more,
    )


@contextmanager
def program(module: str, spec: str, log_file: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a peer: from the first line that it writes, until its input has ended."""
    command = [sys.executable, "-m", module, spec]
    with (
        log_file.open("ab") as log,
        child(
            command, dict(os.environ), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log
        ) as process,
    ):
        assert process.stdout is not None
        assert process.stdin is not None
        said = process.stdout.readline()
        if not said:
            raise RuntimeError(f"the PySpark program ended: see {log.name}")
        yield process
        process.stdin.close()
        process.wait(START_TIMEOUT_S)
