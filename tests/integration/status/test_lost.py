"""What stages set aside, from Kafka through the tracker and Valkey to the outcomes of tokens."""

import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
import redis

from builders import (
    ENRICHED_ID,
    ORDERS_ID,
    make_commit,
    make_definition,
    make_fact,
    make_input,
    make_range,
    make_record,
    make_sink,
    make_stage,
)
from integration.conftest import StartService, Surroundings, running
from integration.status.tracker import now_ms
from integration.waiting import eventually
from message_builders import make_lifecycle
from waybill_shared.access.authentication import DEFAULT_TENANT
from waybill_shared.contract.codec import encode
from waybill_shared.contract.events import Commit, Definition, SetAside, pipeline_key
from waybill_shared.contract.lifecycle_events import LifecycleEvent
from waybill_shared.contract.slots import Keys
from waybill_shared.contract.tokens import Part, Token, pipeline_id, seal
from waybill_shared.contract.vectors import ENDLESS, Span
from waybill_shared.kafka.clients import make_producer, produce_and_wait

NEW_ID = "q83vEjRWeJCrze8SNFZ4kA"
ORDERS = make_input("orders", bases=(10, 0))
LOAD = make_stage("load", inputs=(make_input("enriched", topic_id=ENRICHED_ID, root=False),))
ENRICHED = make_sink("enriched", topic_id=ENRICHED_ID, terminal=False)
CHAIN = make_definition(make_stage("enrich", inputs=(ORDERS,), sinks=(ENRICHED,)), LOAD)
ANEW = replace(make_input("orders", topic_id=NEW_ID, bases=(0, 0)), retired=(ORDERS_ID,))
RESTARTED = make_definition(make_stage("enrich", inputs=(ANEW,), sinks=(ENRICHED,)), LOAD)


def enriched(taken: int, written: int, *aside: SetAside, sequence: int = 0) -> Commit:
    """Stage enrich is past both partitions below `taken`."""
    vector = {(ORDERS_ID, 0): taken, (ORDERS_ID, 1): taken}
    outputs = {(ENRICHED_ID, 0): written}
    commit = make_commit(
        vector, stage="enrich", sink="enriched", outputs=outputs, sequence=sequence
    )
    return replace(commit, set_aside=aside)


def loaded(taken: int, *, sequence: int = 0) -> Commit:
    return make_commit({(ENRICHED_ID, 0): taken}, stage="load", sequence=sequence)


def aside(reason: str, start: int, end: int) -> SetAside:
    runs = tuple(make_range(start, end, partition=partition) for partition in (0, 1))
    return SetAside(reason=reason, ranges=runs)


@dataclass
class Pipeline:
    """One pipeline, whose commits the test writes; tokens are asked of the real services."""

    surroundings: Surroundings
    status: httpx2.Client
    uid: str = field(default_factory=lambda: str(uuid.uuid4()))

    def __post_init__(self) -> None:
        self._producer = make_producer(self.surroundings.kafka)
        record = make_record(f"orders-{self.uid[:8]}", uid=self.uid, stages=CHAIN.stages)
        self._send("pipelines", encode(record))
        self.tell(CHAIN)

    def tell(self, *bodies: Definition | Commit, generation: int = 1) -> None:
        for body in bodies:
            fact = make_fact(body, uid=self.uid, generation=generation)
            self._send("commits", encode(fact))

    def beat(self, event: LifecycleEvent) -> None:
        self._send("lifecycle", encode(replace(event, pipeline_uid=self.uid, at=now_ms())))

    def token(self, start: int, end: int, *, partition: int = 0) -> str:
        span = Span(topic_id=ORDERS_ID, partition=partition, start=start, end=end)
        owner = pipeline_id(DEFAULT_TENANT, self.uid)
        part = Part(pipeline_id=owner, generation=1, spans=(span,))
        token = Token(issued_at=now_ms(), request_id="00" * 8, parts=(part,))
        nonce = uuid.uuid4().bytes[:12]
        return seal(token, self.surroundings.ring, tenant=DEFAULT_TENANT, nonce=nonce)

    def ask(self, token: str, *, wait_s: float = 0) -> dict[str, Any]:
        answer = self.status.get(f"/v1/tokens/{token}", params={"wait": wait_s})
        told: dict[str, Any] = answer.json()
        return told

    def becomes(self, token: str, outcome: str) -> dict[str, Any]:
        """The answer, once it is this one."""
        eventually(lambda: self.ask(token)["outcome"] == outcome)
        return self.ask(token)

    def _send(self, topic: str, value: bytes) -> None:
        key = pipeline_key(DEFAULT_TENANT, self.uid)
        produce_and_wait(self._producer, f"{self.surroundings.prefix}.{topic}", key, value)


def lost(told: dict[str, Any]) -> list[tuple[str, int, int, int]]:
    return [(e["reason"], e["partition"], e["start"], e["end"]) for e in told["lost"]]


@pytest.fixture(scope="module")
def status(start_service: StartService) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=start_service("status"), timeout=120) as client:
        yield client


@pytest.fixture
def pipeline(surroundings: Surroundings, status: httpx2.Client) -> Pipeline:
    return Pipeline(surroundings, status)


@contextmanager
def tracking(surroundings: Surroundings, folder: Path) -> Iterator[None]:
    with running("token_tracker", surroundings.environment, folder / f"{uuid.uuid4().hex}.log"):
        yield


def test_what_a_stage_sets_aside_ends_lost_and_stays_so(
    surroundings: Surroundings, pipeline: Pipeline, tmp_path: Path
) -> None:
    early, gap, rest = (pipeline.token(*ends) for ends in ((10, 12), (11, 15), (16, 18)))
    with tracking(surroundings, tmp_path), ThreadPoolExecutor() as pool:
        pipeline.tell(enriched(12, 3), loaded(3))
        pipeline.becomes(early, "complete")
        pipeline.becomes(gap, "in_progress")
        held = pool.submit(lambda: pipeline.ask(gap, wait_s=30))
        passed = aside("retention_passed", 12, 14)
        pipeline.tell(enriched(16, 5, passed, sequence=1))
        assert lost(held.result(20)) == [("retention_passed", 0, 12, 14)]
        closed = aside("topic_recreated", 16, ENDLESS)
        pipeline.tell(RESTARTED, generation=2)
        assert pipeline.becomes(rest, "in_progress")["lost"] == []
        pipeline.tell(enriched(ENDLESS, 5, passed, closed, sequence=2), generation=2)
        told = pipeline.becomes(rest, "lost")
        assert lost(told) == [("topic_recreated", 0, 16, 18)]
        assert [stage["state"] for stage in told["stages"]] == ["lost", "lost"]
        unnamed = pipeline.token(3, 5, partition=9)
        assert lost(pipeline.ask(unnamed)) == [("topic_recreated", 9, 3, 5)]
        between = pipeline.token(14, 16)
        assert pipeline.ask(between)["outcome"] == "in_progress"
        pipeline.tell(loaded(5, sequence=1))
        pipeline.becomes(between, "complete")

    forget(surroundings, pipeline)
    with tracking(surroundings, tmp_path):
        assert lost(pipeline.becomes(rest, "lost")) == [("topic_recreated", 0, 16, 18)]
        assert lost(pipeline.ask(gap)) == [("retention_passed", 0, 12, 14)]
        told = pipeline.ask(early)
        assert told["outcome"] == "complete"
        assert told["stages"][1]["batch"] == 0, "the snapshot remembers the newest batches"


def test_what_a_driver_waits_for_is_told_to_who_waits(
    surroundings: Surroundings, pipeline: Pipeline, tmp_path: Path
) -> None:
    word = "blocked_by_open_transaction"
    token = pipeline.token(10, 12)

    def blocked_by() -> str | None:
        stages = pipeline.ask(token)["stages"]
        return stages[0]["blocked_by"] if stages else None

    with tracking(surroundings, tmp_path):
        pipeline.becomes(token, "in_progress")
        pipeline.beat(make_lifecycle("Running"))
        pipeline.beat(make_lifecycle("Running", kind="heartbeat", blocked_by=word))
        eventually(lambda: blocked_by() == word)
        pipeline.beat(make_lifecycle("Running", kind="heartbeat"))
        eventually(lambda: blocked_by() is None)


def test_older_copy_of_a_slot_is_mended_without_any_news(
    surroundings: Surroundings, pipeline: Pipeline, tmp_path: Path
) -> None:
    token = pipeline.token(10, 12)
    place = Keys(surroundings.prefix).slot(DEFAULT_TENANT, pipeline.uid)
    with tracking(surroundings, tmp_path), redis.Redis.from_url(surroundings.redis) as client:
        pipeline.becomes(token, "in_progress")
        older = client.dump(place)
        pipeline.tell(enriched(12, 3), loaded(3))
        pipeline.becomes(token, "complete")
        client.restore(place, 0, older, replace=True)
        pipeline.becomes(token, "complete")
        version = client.hget(place, "version")
        eventually(lambda: pipeline.ask(token)["stages"][1]["batch"] == 0)
        assert client.hget(place, "version") == version, "written once, then only confirmed"


def forget(surroundings: Surroundings, pipeline: Pipeline) -> None:
    """All that Valkey holds of the pipeline is gone."""
    with redis.Redis.from_url(surroundings.redis) as client:
        prefix = Keys(surroundings.prefix).slot(DEFAULT_TENANT, pipeline.uid).removesuffix("slot")
        for key in client.scan_iter(f"{prefix}*"):
            client.delete(key)
