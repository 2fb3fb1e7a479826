"""R17 and R18: how long a pipeline takes to start, over a PySpark program until its first row.

Beside that: what a manifest's check takes, and a change of a running pipeline.
"""

import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from itertools import count, pairwise
from pathlib import Path
from threading import Event, Thread
from typing import Any
from urllib.parse import urlencode

from confluent_kafka import Consumer
from prometheus_client.parser import text_string_to_metric_families

from bench.contest import Contest, Turns
from bench.http import Http
from bench.latency import TIMEOUT_S, reader
from bench.pipelines import QUERY, apply, apply_text, await_done, manifest, order, pyspark, services
from bench.surroundings import Surroundings
from waybill_shared.kafka.clients import make_producer, produce_and_wait

SPARE_TIMEOUT_S = 180.0
POLL_S = 0.2
PACE_S = 0.01  # between records, while a gap in them is looked for
BEFORE = 2_000  # rows until the change, so that it is one of a pipeline that has run for a while
AFTER = 600  # rows from then on: a change takes a second, so most are of its new stage


class Pipelines:
    """Applies pipelines, each when `settled` says that the runner is at rest, and deletes them."""

    def __init__(
        self, around: Surroundings, ingress: Http, status: Http, settled: Callable[[], None]
    ) -> None:
        self._kafka = around.kafka
        self._ingress = ingress
        self._status = status
        self.settle = settled
        self._factors = count(3)  # QUERY has 0.2

    def create(self) -> float:
        with self.one(applied=False) as name:
            return self._apply(name, QUERY)

    def first_record(self) -> float:
        """Of a pipeline that has just been applied, until its token is complete."""
        with self.one() as name:
            began = time.perf_counter()
            self.deliver(name)
            return time.perf_counter() - began

    def deliver(self, name: str) -> None:
        """Send a record, and wait until its token is complete."""
        body = order(1) + b"\n"
        path = f"/v1/pipelines/{name}/inputs/orders/records"
        sent = self._ingress.ask("POST", path, body, "application/x-ndjson")
        assert isinstance(sent, dict)
        answer = self._status.ask("GET", f"/v1/tokens/{sent['token']}?wait=60")
        assert isinstance(answer, dict)
        assert answer["outcome"] == "complete", answer

    def check(self) -> float:
        self.settle()
        began = time.perf_counter()
        found = self._ingress.post("/v1/validate", {"manifest": manifest("checked", QUERY)})
        assert isinstance(found, dict)
        assert found["errors"] == [], found
        return time.perf_counter() - began

    def change(self) -> float:
        with self.one() as name:
            return self._apply(name, self._another_query())

    def seconds(self, name: str, action: str, **more: str) -> float:
        """Measure how long an action takes when the runner is at rest."""
        self.settle()
        began = time.perf_counter()
        self.act(name, action, **more)
        return time.perf_counter() - began

    def act(self, name: str, action: str, **more: str) -> None:
        query = urlencode({"wait": 0, **more})
        answer = self._ingress.ask("POST", f"/v1/pipelines/{name}/{action}?{query}")
        assert isinstance(answer, dict)
        await_done(self._status, answer["operation"])

    def look_at(self, name: str) -> dict[str, Any]:
        """Return what status says of a pipeline."""
        answer = self._status.ask("GET", f"/v1/pipelines/{name}")
        assert isinstance(answer, dict)
        return answer

    def gap(self) -> float:
        """The longest time without a row while a pipeline that gets records all the time changes"""
        with (
            self.one() as name,
            closing(reader(self._kafka, f"{name}.out")) as rows,
            feeding(self._kafka, f"{name}.in"),
        ):
            take(rows, BEFORE)
            times = take(rows, 1)
            self._apply(name, self._another_query())
            times += take(rows, AFTER)
        return max(after - before for before, after in pairwise(sorted(times))) / 1000

    @contextmanager
    def one(self, *, applied: bool = True, text: Callable[[str], str] = manifest) -> Iterator[str]:
        """Name a pipeline, apply it by the manifest of that name, and delete it in the end."""
        name = f"orders-{uuid.uuid4().hex[:8]}"
        self.settle()
        if applied:
            apply_text(self._ingress, self._status, name, text(name))
            self.settle()
        yield name
        answer = self._ingress.ask("DELETE", f"/v1/pipelines/{name}?wait=0")
        assert isinstance(answer, dict)
        await_done(self._status, answer["operation"])

    def _apply(self, name: str, query: str) -> float:
        began = time.perf_counter()
        apply(self._ingress, self._status, name, query=query)
        return time.perf_counter() - began

    def _another_query(self) -> str:
        return QUERY.replace("0.2", f"0.{next(self._factors)}")


@contextmanager
def feeding(kafka: str, topic: str) -> Iterator[None]:
    """A record after the other."""
    producer = make_producer(kafka, **{"linger.ms": 0})
    over = Event()

    def feed() -> None:
        for number in count():
            if over.wait(PACE_S):
                return
            producer.produce(topic, key=str(number), value=order(number))

    thread = Thread(target=feed)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        producer.flush()


def take(rows: Consumer, number: int) -> list[int]:
    """When each of the next ones was written, in ms."""
    times: list[int] = []
    while len(times) < number:
        message = rows.poll(TIMEOUT_S)
        assert message is not None, f"{len(times)} of {number} rows came"
        times.append(message.timestamp()[1])
    return times


@contextmanager
def pipelines(around: Surroundings, *, spares: int) -> Iterator[Pipelines]:
    setting = {"WAYBILL_STAGE_RUNNER_SPARE_DRIVERS": str(spares)}
    around = replace(around, environment={**around.environment, **setting})
    with (
        services(around) as urls,
        closing(Http(urls["ingress"])) as writing,
        closing(Http(urls["status"])) as reading,
    ):
        logs = Path(around.environment["WAYBILL_STAGE_RUNNER_STATE_FOLDER"], "drivers")
        settled = partial(await_rest, urls["stage_runner"], logs, spares)
        yield Pipelines(around, writing, reading, settled)


def await_rest(runner: str, logs: Path, spares: int) -> None:
    """So many drivers are ready and warm, or more if runs ended just now; none comes or goes."""
    deadline = time.monotonic() + SPARE_TIMEOUT_S
    while True:
        with urllib.request.urlopen(f"{runner}/metrics", timeout=TIMEOUT_S) as answer:
            families = text_string_to_metric_families(answer.read().decode())
        samples = [s for f in families if f.name == "waybill_drivers" for s in f.samples]
        drivers = {s.labels["state"]: s.value for s in samples if s.labels["state"] != "running"}
        said = [log.read_text() for log in logs.glob("*/driver.log")]
        warm = all("spark is warm" in each for each in said)
        ready = drivers.pop("ready", 0)
        if (ready >= spares > 0 or ready == spares) and not any(drivers.values()) and warm:
            return
        assert time.monotonic() < deadline, f"the runner does not come to rest: {drivers}"
        time.sleep(POLL_S)


@contextmanager
def warm(around: Surroundings) -> Iterator[Turns]:
    with pipelines(around, spares=1) as ours:
        also = {
            "the first record of a pipeline is complete": ours.first_record,
            "a manifest is checked": ours.check,
            "a change of a running pipeline": ours.change,
            "no row comes while it changes": ours.gap,
        }
        yield Turns(ours=ours.create, theirs=lambda: first_row(around), also=also)


@contextmanager
def cold(around: Surroundings) -> Iterator[Turns]:
    with pipelines(around, spares=0) as ours:
        yield Turns(ours=ours.create, theirs=lambda: first_row(around))


def first_row(around: Surroundings) -> float:
    """Of a program that is started, over a topic that holds a record."""
    began = time.perf_counter()
    with pyspark(around, "plain") as way, closing(reader(around.kafka, way.target)) as rows:
        produce_and_wait(make_producer(around.kafka), way.source, "1", order(1))
        assert rows.poll(TIMEOUT_S) is not None, "it writes nothing"
        return time.perf_counter() - began


R17 = Contest(
    key="R17",
    what="a pipeline starts",
    ours="Waybill: from apply to Running, a spare driver is ready",
    theirs="plain PySpark: from its command line to its first row",
    unit="s",
    target=0.15,
    begin=warm,
)
R18 = Contest(
    key="R18",
    what="a pipeline starts where no driver is ready",
    ours="Waybill: from apply to Running, with its check",
    theirs="plain PySpark: from its command line to its first row",
    unit="s",
    target=1.0,
    begin=cold,
)
