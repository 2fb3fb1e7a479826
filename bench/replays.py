"""R49r: how long a replay of many dead letters takes, compared with the same records sent."""

import json
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass

from bench.contest import Contest, Turns
from bench.http import Http
from bench.pipelines import COLUMNS, PARTITIONS, apply_text, services
from bench.surroundings import Surroundings
from waybill_shared.contract.dead_letters import OFFSET
from waybill_shared.kafka.clients import position_of, read_to_end

LETTERS = 1_000  # the most of one request
BAD = -1.0
MANIFEST = """
version: 1
name: {name}
inputs:
  - name: orders
    kafka: {{topic: {name}.in, partitions: {partitions}}}
    schema: "{columns}"
    expectations: [{{name: enough, expect: "amount >= {least}"}}]
deadLetter: {{budget: 10000 per 1 second}}
stages:
  - name: enrich
    inputs: [orders]
    steps: [{{name: enriched, sql: "SELECT *, amount * 0.2 AS tax FROM orders"}}]
    sinks: [{{name: out, kafka: {{topic: {name}.out, partitions: {partitions}}}}}]
"""


@dataclass
class Replayed:
    """A pipeline with as many dead letters, of which the cause is mended."""

    name: str
    kafka: str
    ingress: Http
    status: Http

    def apply(self, least: float) -> None:
        text = MANIFEST.format(name=self.name, partitions=PARTITIONS, columns=COLUMNS, least=least)
        apply_text(self.ingress, self.status, self.name, text)

    def send(self, amount: float, outcome: str) -> None:
        records = [{"order_id": n, "customer": "ada", "amount": amount} for n in range(LETTERS)]
        body = "\n".join(json.dumps(record) for record in records).encode()
        path = f"/v1/pipelines/{self.name}/inputs/orders/records"
        self._await(self.ingress.ask("POST", path, body, "application/x-ndjson"), outcome)

    def ids(self) -> list[str]:
        topic = f"{self.name}.in.dlq"
        return [
            f"{topic}:{partition}:{offset}:{int(dict(letter.headers() or ())[OFFSET] or 0)}"
            for letter in read_to_end(self.kafka, topic, range(PARTITIONS))
            for partition, offset in [position_of(letter)]
        ]

    def replay(self, ids: list[str]) -> None:
        path = f"/v1/pipelines/{self.name}/dead-letters/replay"
        self._await(self.ingress.post(path, {"ids": ids, "again": True}), "complete")

    def _await(self, made: object, outcome: str) -> None:
        assert isinstance(made, dict)
        answer = self.status.ask("GET", f"/v1/tokens/{made['token']}?wait=60")
        assert isinstance(answer, dict)
        assert answer["outcome"] == outcome, answer


@contextmanager
def replayed_against_sent(around: Surroundings) -> Iterator[Turns]:
    with services(around) as urls, ExitStack() as stack:
        pipeline = Replayed(
            name=f"orders-{uuid.uuid4().hex[:8]}",
            kafka=around.kafka,
            ingress=stack.enter_context(closing(Http(urls["ingress"]))),
            status=stack.enter_context(closing(Http(urls["status"]))),
        )
        pipeline.apply(0.0)
        pipeline.send(BAD, "dead_lettered")
        ids = pipeline.ids()
        assert len(ids) == LETTERS, len(ids)
        pipeline.apply(BAD)

        def ours() -> float:
            began = time.perf_counter()
            pipeline.replay(ids)
            return time.perf_counter() - began

        def theirs() -> float:
            began = time.perf_counter()
            pipeline.send(12.5, "complete")
            return time.perf_counter() - began

        yield Turns(ours=ours, theirs=theirs)


R49R = Contest(
    key="R49r",
    what=f"{LETTERS:,} records over HTTP, until their token is complete",
    ours="they are dead letters, and replayed",
    theirs="they are sent",
    unit="s",
    target=2.0,
    begin=replayed_against_sent,
)
