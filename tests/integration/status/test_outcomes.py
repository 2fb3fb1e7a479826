"""Status as a process over real Kafka and Valkey; the slots are written as the tracker does it."""

import json
import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import httpx2
import pytest
import redis

from integration.conftest import StartService, Surroundings
from integration.status.tracker import SNAPSHOT, TOPIC_ID, Tracker, now_ms, record_pipeline, slot_of
from integration.waiting import eventually
from waybill_shared.access.authentication import DEFAULT_TENANT
from waybill_shared.contract.codec import encode
from waybill_shared.contract.errors import Problem
from waybill_shared.contract.events import Reply
from waybill_shared.contract.operations import OperationId
from waybill_shared.contract.slots import Keys
from waybill_shared.contract.tokens import Part, Token, pipeline_id, seal
from waybill_shared.contract.vectors import Span
from waybill_shared.contract.words import Action, OperationState
from waybill_shared.kafka.clients import make_producer, produce_and_wait


@pytest.fixture(scope="module")
def status(start_service: StartService) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=start_service("status"), timeout=120) as client:
        yield client


@pytest.fixture
def tracker(surroundings: Surroundings) -> Iterator[Tracker]:
    client = redis.Redis.from_url(surroundings.redis)
    uid = record_pipeline(surroundings)
    yield Tracker(client, Keys(surroundings.prefix), uid)
    client.close()


def token_for(surroundings: Surroundings, tracker: Tracker, start: int, end: int) -> str:
    span = Span(topic_id=TOPIC_ID, partition=0, start=start, end=end)
    owner = pipeline_id(DEFAULT_TENANT, tracker.uid)
    part = Part(pipeline_id=owner, generation=1, spans=(span,))
    token = Token(issued_at=now_ms(), request_id="00" * 8, parts=(part,))
    return seal(token, surroundings.ring, tenant=DEFAULT_TENANT, nonce=uuid.uuid4().bytes[:12])


def test_an_outcome_follows_the_slot(
    surroundings: Surroundings, status: httpx2.Client, tracker: Tracker
) -> None:
    path = f"/v1/tokens/{token_for(surroundings, tracker, 12, 14)}"
    unknown = status.get(path)
    assert unknown.status_code == 503
    assert unknown.headers["retry-after"] == "1"
    assert unknown.json()["outcome"] == "unknown"

    tracker.write(slot_of(tracker.uid, reached=13))
    eventually(lambda: status.get(path).status_code == httpx2.codes.OK)
    waiting = status.get(path).json()
    assert waiting["outcome"] == "in_progress"
    assert waiting["accepted"] == 2
    assert waiting["stages"][0]["sinks"] == [
        {"name": "lake", "state": "waiting", "batch_rows": None, "behind": 1, "version": None}
    ]

    tracker.commit((0, 11), (1, 13), (2, 20), (3, 30))
    done = status.get(path).json()
    assert done["outcome"] == "complete"
    assert done["stages"][0]["batch"] == 2, "the batch that brought its last record"
    version = done["stages"][0]["sinks"][0]["version"]
    assert version == {"iceberg_snapshot_id": str(SNAPSHOT + 2)}


def test_a_flushed_or_foreign_slot_is_unknown(
    surroundings: Surroundings, status: httpx2.Client, tracker: Tracker
) -> None:
    path = f"/v1/tokens/{token_for(surroundings, tracker, 12, 14)}"
    tracker.commit((0, 20))
    eventually(lambda: status.get(path).json()["outcome"] == "complete")
    place = tracker.keys.slot(DEFAULT_TENANT, tracker.uid)
    tracker.client.hset(place, "run_id", "0" * 40)
    assert status.get(path).json()["reason"] == "slot_missing"
    tracker.client.delete(place)
    assert status.get(path).json()["reason"] == "slot_missing"


def test_a_silent_tracker_makes_unknown_but_leaves_what_is_final(
    surroundings: Surroundings, status: httpx2.Client, tracker: Tracker
) -> None:
    tracker.commit((0, 13))
    early = f"/v1/tokens/{token_for(surroundings, tracker, 12, 13)}"
    late = f"/v1/tokens/{token_for(surroundings, tracker, 13, 14)}"
    eventually(lambda: status.get(late).json()["outcome"] == "in_progress")
    tracker.write(slot_of(tracker.uid, reached=13), at_ms=now_ms() - 6_000)
    assert status.get(late).json()["reason"] == "tracker_silent"
    assert status.get(early).json()["outcome"] == "complete"


def test_a_commit_wakes_a_long_poll(
    surroundings: Surroundings, status: httpx2.Client, tracker: Tracker
) -> None:
    tracker.write(slot_of(tracker.uid, reached=10))
    path = f"/v1/tokens/{token_for(surroundings, tracker, 12, 14)}"
    eventually(lambda: status.get(path).status_code == httpx2.codes.OK)
    started = time.monotonic()
    last = status.get(path, params={"wait": 1}).json()
    assert last["outcome"] == "in_progress"
    assert time.monotonic() - started >= 1

    with ThreadPoolExecutor() as pool:
        held = pool.submit(lambda: status.get(path, params={"wait": 30}).json())
        eventually(lambda: "waybill_waiters 1.0" in status.get("/metrics").text)
        tracker.commit((0, 14), stamped=False)
        assert held.result(10)["outcome"] == "complete"


def test_a_lost_wake_up_is_noticed_within_a_second(
    surroundings: Surroundings, status: httpx2.Client, tracker: Tracker
) -> None:
    tracker.write(slot_of(tracker.uid, reached=10))
    path = f"/v1/tokens/{token_for(surroundings, tracker, 12, 14)}"
    with ThreadPoolExecutor() as pool:
        held = pool.submit(lambda: status.get(path, params={"wait": 30}).json())
        eventually(lambda: "waybill_waiters 1.0" in status.get("/metrics").text)
        tracker.write(slot_of(tracker.uid, reached=14), wake=False)
        assert held.result(3)["outcome"] == "complete"


def events_of(response: httpx2.Response) -> Iterator[dict[str, str]]:
    event: dict[str, str] = {}
    for line in response.iter_lines():
        if line == "":
            if event:
                yield event
            event = {}
        else:
            name, _, value = line.partition(": ")
            event[name] = value


def test_a_stream_tells_every_change_once_and_ends(
    surroundings: Surroundings, status: httpx2.Client, tracker: Tracker
) -> None:
    tracker.write(slot_of(tracker.uid, reached=10))
    path = f"/v1/tokens/{token_for(surroundings, tracker, 12, 14)}"
    headers = {"Accept": "text/event-stream"}
    stop = threading.Event()
    confirming = threading.Thread(target=lambda: _confirm_until(tracker, stop))
    confirming.start()
    try:
        with status.stream("GET", path, headers=headers) as response:
            assert response.headers["content-type"].startswith("text/event-stream")
            events = events_of(response)
            first = next(events)
            assert first["event"] == "outcome"
            assert json.loads(first["data"])["outcome"] == "in_progress"
            tracker.write(slot_of(tracker.uid, reached=10))  # nothing new for this token
            tracker.write(slot_of(tracker.uid, reached=13))
            second = next(events)
            assert json.loads(second["data"])["stages"][0]["sinks"][0]["behind"] == 1
            tracker.commit((0, 14))
            last = next(events)
            assert json.loads(last["data"])["outcome"] == "complete"
            assert list(events) == []
    finally:
        stop.set()
        confirming.join()
    resumed = {**headers, "Last-Event-ID": last["id"]}
    with status.stream("GET", path, headers=resumed) as response:
        assert list(events_of(response)) == []


def _confirm_until(tracker: Tracker, stop: threading.Event) -> None:
    while not stop.wait(0.5):
        tracker.confirm()


def test_many_tokens_are_answered_together(
    surroundings: Surroundings, status: httpx2.Client, tracker: Tracker
) -> None:
    tracker.commit((0, 13))
    tokens = [token_for(surroundings, tracker, 12, 13), "wb1.forged", "", "x"]
    tokens.append(token_for(surroundings, tracker, 2, 12))
    eventually(lambda: status.get(f"/v1/tokens/{tokens[0]}").status_code == httpx2.codes.OK)
    complete, *forged, lost = status.post("/v1/tokens/query", json={"tokens": tokens}).json()[
        "outcomes"
    ]
    assert complete["outcome"] == "complete"
    assert {each["error"]["type"] for each in forged} == {"urn:waybill:problem:token_not_found"}
    assert lost["outcome"] == "lost"
    assert lost["lost"] == [
        {"reason": "before_start", "topic": "orders.in", "partition": 0, "start": 2, "end": 10}
    ]


def test_a_pipeline_is_told_with_its_phase_and_last_batch(
    status: httpx2.Client, tracker: Tracker
) -> None:
    name = f"orders-{tracker.uid[:8]}"
    eventually(lambda: status.get(f"/v1/pipelines/{name}").status_code == httpx2.codes.OK)
    assert status.get(f"/v1/pipelines/{name}").json()["phase"] == "Unknown"
    slot = slot_of(tracker.uid, reached=13, batch=4)
    tracker.write(replace(slot, lifecycle=None))
    assert status.get(f"/v1/pipelines/{name}").json()["phase"] == "Created"
    tracker.write(slot)
    told = status.get(f"/v1/pipelines/{name}").json()
    assert told["phase"] == "Running"
    assert told["stages"][0]["last_batch"]["batch"] == 4
    assert {"from": "stage/load", "to": "sink/lake"} in told["graph"]["edges"]
    assert told["inputs"][0]["bases"] == {"0": 10}
    phases = {item["name"]: item["phase"] for item in status.get("/v1/pipelines").json()["items"]}
    assert phases[name] == "Running"


def test_an_operation_is_pending_until_it_is_answered(
    surroundings: Surroundings, status: httpx2.Client
) -> None:
    operation = OperationId(action=Action.APPLY, pipeline="orders", nonce=uuid.uuid4().hex)
    pending = status.get(f"/v1/operations/{operation}").json()
    assert (pending["state"], pending["pipeline"], pending["action"]) == (
        "pending",
        "orders",
        "apply",
    )
    reply = Reply(
        tenant=DEFAULT_TENANT,
        pipeline_uid="u",
        id=str(operation),
        pipeline="orders",
        action=Action.APPLY,
        actor="ada",
        state=OperationState.FAILED,
        generation=None,
        errors=(Problem(message="no such column", line=3, column=5, path="stages.0"),),
        warnings=("slow",),
        at=now_ms(),
    )
    with ThreadPoolExecutor() as pool:
        path = f"/v1/operations/{operation}"
        held = pool.submit(lambda: status.get(path, params={"wait": 20}).json())
        producer = make_producer(surroundings.kafka)
        produce_and_wait(producer, f"{surroundings.prefix}.replies", "k", encode(reply))
        answer = held.result(10)
    assert answer["state"] == "failed"
    assert answer["errors"][0]["line"] == 3
    assert answer["warnings"] == ["slow"]
    assert status.get("/v1/operations/nonsense").status_code == 404
