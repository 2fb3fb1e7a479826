"""How fast the console is: 500 pipelines, 50 commits a second, in the Chromium of this machine.

`PYTHONPATH=tests .venv/bin/python -m bench.console`. Kafka, Valkey, tracker and status are real;
what runners and drivers would have said is written here, because 500 of them find no room.
With `--hour` it is shown an hour of events instead, with its clock turned.
"""

import argparse
import json
import statistics
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

import httpx2
import psutil
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic
from playwright.sync_api import Browser, Page, expect

from bench.console_hour import an_hour
from bench.facts import INPUT_PARTITIONS, commit, record, stage_of
from browsing import WAIT_MS, browsing, visiting
from waybill_local import stack
from waybill_local.services import SERVICES, topic_prefix
from waybill_local.stack import Options, StackState
from waybill_shared.access.authentication import DEFAULT_TENANT
from waybill_shared.contract import codec
from waybill_shared.contract.events import Commit, Definition, Fact, PipelineRecord, pipeline_key
from waybill_shared.contract.lifecycle_events import LifecycleEvent
from waybill_shared.contract.manifest.reading import read_manifest
from waybill_shared.kafka.admin import make_admin
from waybill_shared.kafka.clients import make_producer
from waybill_shared.kafka.topics import create_missing
from waybill_shared.process.clock import SystemClock

PIPELINES: Final = 500
COMMITS_S: Final = 50
SECONDS: Final = 60
BEAT_S: Final = 4.0
BATCH_MS: Final = 80
TOPIC: Final = "load.in"
LOADS: Final = 10
MANIFEST: Final = f"""\
version: 1
name: NAME
inputs: [{{name: orders, kafka: {{topic: {TOPIC}}}, schema: "id BIGINT"}}]
stages: [{{name: load, inputs: [orders], sinks: [{{name: out, kafka: {{topic: NAME.out}}}}]}}]
"""


class World:
    """What runners and drivers say, in their topics."""

    def __init__(self, state: StackState) -> None:
        self._producer: Producer = make_producer(state.kafka)
        admin = make_admin(state.kafka)
        create_missing(admin, [NewTopic(TOPIC, INPUT_PARTITIONS, 1)])
        self._topic_id = admin.identify([TOPIC])[TOPIC].topic_id
        self._clock = SystemClock()
        self.uids = [str(uuid.uuid4()) for _ in range(PIPELINES)]
        self._written = 0
        for number, uid in enumerate(self.uids):
            self._define(number, uid)
        self._producer.flush()

    @contextmanager
    def turning(self) -> Iterator[None]:
        stop = threading.Event()
        thread = threading.Thread(target=self._turn, args=(stop,))
        thread.start()
        yield
        stop.set()
        thread.join()

    def _turn(self, stop: threading.Event) -> None:
        beat_at, number = 0.0, 0
        while not stop.wait(1 / COMMITS_S):
            if time.monotonic() > beat_at:
                for uid in self.uids:
                    self._say("lifecycle", uid, self._life(uid, "heartbeat" if beat_at else ""))
                beat_at = time.monotonic() + BEAT_S
            self._commit(self.uids[number % 10], number)
            number += 1
            self._producer.poll(0)
        self._producer.flush()

    def _say(self, topic: str, uid: str, message: PipelineRecord | Fact | LifecycleEvent) -> None:
        key, value = pipeline_key(DEFAULT_TENANT, uid), codec.encode(message)
        self._producer.produce(f"{topic_prefix()}.{topic}", key=key, value=value)

    def _define(self, number: int, uid: str) -> None:
        name = f"pipeline-{number:03d}"
        manifest, stage = MANIFEST.replace("NAME", name), stage_of(TOPIC, self._topic_id)
        self._say(
            "pipelines", uid, record(uid, name=name, manifest=read_manifest(manifest), stage=stage)
        )
        self._fact(uid, Definition(name=name, deleted=False, stages=(stage,)))

    def _fact(self, uid: str, body: Definition | Commit) -> None:
        at = self._clock.now_ms()
        fact = Fact(tenant=DEFAULT_TENANT, pipeline_uid=uid, generation=1, at=at, body=body)
        self._say("commits", uid, fact)

    def _commit(self, uid: str, number: int) -> None:
        self._producer.produce(TOPIC, value=b'{"id": 1}', partition=0)
        self._written += 1
        frontier = {(self._topic_id, 0): self._written}
        made = commit(number)
        batch = replace(made.batch, started_at=made.batch.committed_at - BATCH_MS)
        self._fact(uid, replace(made, batch=batch, frontier=frontier))

    def _life(self, uid: str, kind: str) -> LifecycleEvent:
        return LifecycleEvent(
            tenant=DEFAULT_TENANT,
            pipeline_uid=uid,
            pipeline="",
            generation=1,
            kind="heartbeat" if kind else "transition",
            phase_from=None,
            phase="Running",
            reason="driver runs",
            error=None,
            actor="stage_runner",
            run=1,
            attempt=0,
            next_at=None,
            at=self._clock.now_ms(),
        )


def loads(page: Page) -> dict[str, float]:
    """Medians of several: from the beginning of the navigation, in milliseconds."""
    paints, firsts = [], []
    for _ in range(LOADS):
        page.goto("/")
        expect(page.locator("tbody tr").first).to_be_visible()
        first = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
        paints.append(float(page.evaluate(first)))
        firsts.append(float(page.evaluate("window.firstRow")))
    return {
        "first paint, ms": statistics.median(paints),
        "first row, ms": statistics.median(firsts),
    }


def latencies(page: Page, url: str) -> dict[str, float]:
    """From when another reader of the stream has an event until it stands in the page."""
    page.goto("/p/pipeline-003?stage=load")
    expect(page.locator(".panel tbody tr").first).to_be_visible(timeout=WAIT_MS)
    page.evaluate(
        """() => {
            window.shown = {};
            const body = document.querySelector('.panel tbody');
            new MutationObserver(() => {
                const batch = body.querySelector('th')?.textContent.replace(/,/g, '');
                window.shown[batch] ??= Date.now();
            }).observe(body, {childList: true});
        }"""
    )
    heard: dict[str, float] = {}
    until = time.monotonic() + 20
    parameters = {"pipeline": "pipeline-003", "type": "waybill.stage.committed"}
    clock = SystemClock()
    with httpx2.stream(
        "GET",
        f"{url}/v1/events",
        params=parameters,
        headers={"Accept": "text/event-stream"},
        timeout=30,
    ) as answer:
        for line in answer.iter_lines():
            if line.startswith("data: "):
                heard[str(json.loads(line[6:])["data"]["batch"])] = clock.now_ms()
            if time.monotonic() > until:
                break
    page.wait_for_timeout(500)
    shown = page.evaluate("window.shown")
    late = sorted(shown[batch] - at for batch, at in heard.items() if batch in shown)
    p95 = late[int(len(late) * 0.95)]
    return {"events": len(late), "p50, ms": statistics.median(late), "p95, ms": p95}


def work(page: Page) -> dict[str, float]:
    """Of all processes of the browser, while the list is shown."""
    page.goto("/")
    expect(page.locator("tbody tr")).to_have_count(PIPELINES, timeout=WAIT_MS)
    session = page.context.new_cdp_session(page)
    tree = [
        each for each in psutil.Process().children(recursive=True) if "chrom" in each.name().lower()
    ]

    def used_s() -> float:
        return sum(each.cpu_times().user + each.cpu_times().system for each in tree)

    def heap() -> float:
        session.send("HeapProfiler.collectGarbage")
        metrics = session.send("Runtime.getHeapUsage")
        return float(metrics["usedSize"]) / 1e6

    page.wait_for_timeout(5_000)
    before, begun, at_first = used_s(), time.monotonic(), heap()
    page.wait_for_timeout(SECONDS * 1_000)
    core = (used_s() - before) / (time.monotonic() - begun)
    return {"cores": core, "heap first, MB": at_first, "heap last, MB": heap()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hour", action="store_true", help="what a page keeps of an hour")
    hour = parser.parse_args().hour
    services = tuple(each for each in SERVICES if each.name in ("token_tracker", "status"))
    options = Options(gateway_port=0, kafka_port=0, valkey_port=0, services=services)
    with tempfile.TemporaryDirectory() as home:
        state = stack.up(Path(home), lambda report: None, options=options, tied=True)
        try:
            world, url = World(state), _status(state)
            with browsing() as browser:
                if hour:
                    an_hour(browser, url, world.uids)
                else:
                    _figures(browser, url, world)
        finally:
            stack.down(Path(home), lambda report: None)


def _figures(browser: Browser, url: str, world: World) -> None:
    with world.turning(), visiting(browser, url) as page:
        page.add_init_script(
            """new MutationObserver((_, it) => {
                if (!document.querySelector('tbody tr')) return;
                window.firstRow = performance.now();
                it.disconnect();
            }).observe(document, {childList: true, subtree: true});"""
        )
        for figures in (loads(page), latencies(page, url), work(page)):
            for name, value in figures.items():
                sys.stdout.write(f"{name}: {value:.2f}\n")


def _status(state: StackState) -> str:
    """Without the gateway, which is ready when all services are."""
    return f"http://{next(each.address for each in state.processes if each.name == 'status')}"


if __name__ == "__main__":
    main()
