"""R17: how long a pipeline takes to start, over a PySpark program until its first row.

Beside that, a change: from its `apply` until the new run has begun, with its check and the end of
the run before.
"""

import time
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import count

from prometheus_client.parser import text_string_to_metric_families

from bench.contest import Contest, Turns
from bench.http import Http
from bench.latency import TIMEOUT_S, reader
from bench.pipelines import COLUMNS, MANIFEST, PARTITIONS, QUERY, await_done, order, pyspark
from bench.surroundings import Surroundings, await_ready, service
from waybill_shared.kafka.clients import make_producer, produce_and_wait

SPARE_TIMEOUT_S = 180.0
POLL_S = 0.2


class Pipelines:
    """Applies pipelines, each in a driver that waits for it, and deletes them."""

    def __init__(self, ingress: Http, status: Http, runner: str) -> None:
        self._ingress = ingress
        self._status = status
        self._runner = runner
        self._factors = count(2)

    def create(self) -> float:
        name = f"orders-{uuid.uuid4().hex[:8]}"
        self._await_spare()
        took = self._apply(name, QUERY)
        self._delete(name)
        return took

    def change(self) -> float:
        name = f"orders-{uuid.uuid4().hex[:8]}"
        self._apply(name, QUERY)
        self._await_spare()
        took = self._apply(name, QUERY.replace("0.2", f"0.{next(self._factors)}"))
        self._delete(name)
        return took

    def _apply(self, name: str, query: str) -> float:
        manifest = MANIFEST.format(name=name, partitions=PARTITIONS, columns=COLUMNS, query=query)
        began = time.perf_counter()
        path = f"/v1/pipelines/{name}?wait=0"
        told = self._ingress.ask("PUT", path, manifest.encode(), "application/yaml")
        assert isinstance(told, dict)
        await_done(self._status, told["operation"])
        return time.perf_counter() - began

    def _delete(self, name: str) -> None:
        told = self._ingress.ask("DELETE", f"/v1/pipelines/{name}?wait=0")
        assert isinstance(told, dict)
        await_done(self._status, told["operation"])

    def _await_spare(self) -> None:
        """Ready, and for a while, so that it is warm."""
        deadline = time.monotonic() + SPARE_TIMEOUT_S
        while self._spares() != 1 and time.monotonic() < deadline:
            time.sleep(POLL_S)

    def _spares(self) -> float:
        with urllib.request.urlopen(f"{self._runner}/metrics", timeout=TIMEOUT_S) as answer:
            families = text_string_to_metric_families(answer.read().decode())
        samples = [s for f in families if f.name == "waybill_drivers" for s in f.samples]
        by_state = {s.labels["state"]: s.value for s in samples}
        return by_state.get("ready", 0) - by_state.get("starting", 0)


@contextmanager
def started(around: Surroundings) -> Iterator[Turns]:
    with (
        service("ingress", around) as ingress,
        service("status", around) as status,
        service("token_tracker", around) as tracker,
        service("stage_runner", around) as runner,
    ):
        for url in (ingress, status, tracker, runner):
            await_ready(url)
        with closing(Http(ingress)) as writing, closing(Http(status)) as reading:
            pipelines = Pipelines(writing, reading, runner)
            yield Turns(
                ours=pipelines.create,
                theirs=lambda: first_row(around),
                beside={"a change of a running pipeline": pipelines.change},
            )


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
    begin=started,
)
