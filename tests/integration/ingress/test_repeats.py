"""Writes with an Idempotency-Key, on a broker: once, whoever is killed, and answered the same."""

import json
import os
import random
import signal
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import httpx2
import pytest

from integration.conftest import Serving, StartService, Surroundings, serving
from integration.ingress.dropping import DroppingRoad, every, sometimes
from integration.ingress.letters import Grave
from integration.ingress.test_records import NDJSON, Known, make_pipeline, opened, stored
from integration.waiting import eventually
from waybill import Client
from waybill_shared.contract.codec import decode
from waybill_shared.contract.events import Command
from waybill_shared.contract.requests import RequestAnswer
from waybill_shared.kafka.admin import KafkaAdmin, make_admin
from waybill_shared.kafka.clients import read_to_end
from waybill_shared.process.failpoints import FOLDER, REACHED

PATIENCE_S = 2
KEPT = "kept by all"
SENDS = 1_000
KEYS, CLIENTS, REQUESTS = 50, 200, 50
WAIT_S = 60.0
ROWS = '{"order_id": 1, "customer": "ada"}\n{"order_id": 2, "customer": "bob"}\nx\n'


@pytest.fixture(scope="module")
def admin(surroundings: Surroundings) -> KafkaAdmin:
    return make_admin(surroundings.kafka)


@pytest.fixture(scope="module")
def ingress(start_service: StartService) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=start_service("ingress", **SETTINGS), timeout=WAIT_S) as client:
        yield client


@pytest.fixture(scope="module")
def other(start_service: StartService) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=start_service("ingress", **SETTINGS), timeout=WAIT_S) as client:
        yield client


@pytest.fixture(scope="module")
def known(surroundings: Surroundings, admin: KafkaAdmin, ingress: httpx2.Client) -> Known:
    return make_pipeline(surroundings, admin, ingress)


SETTINGS = {"WAYBILL_INGRESS_KEY_PATIENCE_S": str(PATIENCE_S)}


def fresh_key() -> str:
    return str(uuid.uuid4())


def send(client: httpx2.Client, known: Known, key: str, rows: str = ROWS) -> httpx2.Response:
    headers = {**NDJSON, "Idempotency-Key": key}
    return client.post(known.path, content=rows, headers=headers)


def done(ask: Callable[[], httpx2.Response]) -> httpx2.Response:
    """What is answered at last, however often it is still being carried out."""
    answer: httpx2.Response | None = None

    def asked() -> bool:
        nonlocal answer
        answer = ask()
        return answer.status_code not in (409, 503)

    eventually(asked, within_s=WAIT_S)
    assert answer is not None
    return answer


def test_the_same_request_has_one_answer(
    surroundings: Surroundings, known: Known, ingress: httpx2.Client, other: httpx2.Client
) -> None:
    before = stored(surroundings, known.topic)
    key = fresh_key()
    first = send(ingress, known, key)
    assert first.status_code == 200, first.text
    assert first.json()["accepted"] == 2
    assert [each["index"] for each in first.json()["rejected"]] == [2]
    assert "Idempotent-Replayed" not in first.headers
    assert first.headers["Location"] == f"/v1/tokens/{first.json()['token']}"
    for client in (ingress, other):
        again = done(partial(send, client, known, key))
        assert again.content == first.content
        assert again.status_code == 200
        assert again.headers["Idempotent-Replayed"] == "true"
        assert again.headers["Location"] == first.headers["Location"]
        assert again.headers["Content-Type"] == first.headers["Content-Type"]
    new = {
        place: value
        for place, value in stored(surroundings, known.topic).items()
        if place not in before
    }
    assert len(new) == 2
    (part,) = opened(surroundings, first.json()["token"]).parts
    covered = {(s.partition, o) for s in part.spans for o in range(s.start, s.end)}
    assert covered == set(new)


class Process:
    """An ingress that may be killed, or paused, at a point."""

    def __init__(self, started: Serving, points: Path) -> None:
        self.pid = started.pid
        self.port = int(started.url.rpartition(":")[2])
        self._points = points
        self.http = httpx2.Client(base_url=started.url, timeout=WAIT_S)

    def arm(self, point: str) -> None:
        (self._points / point).touch()

    def reached(self, point: str) -> None:
        eventually((self._points / f"{point}{REACHED}").exists, within_s=WAIT_S)

    def go_on(self, point: str) -> None:
        (self._points / f"{point}{REACHED}").unlink()


@contextmanager
def an_ingress(around: Surroundings, folder: Path, **settings: str) -> Iterator[Process]:
    log = folder / f"ingress-{uuid.uuid4().hex[:6]}.log"
    environment = {**around.environment, **SETTINGS, FOLDER: str(folder), **settings}
    with serving("ingress", environment, log, killed=True) as started:
        yield Process(started, folder)


@pytest.fixture
def doomed(surroundings: Surroundings, tmp_path: Path, known: Known) -> Iterator[Process]:
    """Of this test alone; it knows the pipeline."""
    with an_ingress(surroundings, tmp_path) as process:
        question = {"pipeline": known.record.name, "input": "orders"}
        eventually(lambda: process.http.post("/v1/tokens", json=question).status_code == 200)
        yield process


def written(around: Surroundings, known: Known, order: str) -> list[tuple[int | None, int | None]]:
    """Where records with this text stand, for readers of committed ones."""
    found = stored(around, known.topic).items()
    return [place for place, (_, value) in found if value is not None and order in value.decode()]


def covered(around: Surroundings, token: str) -> set[tuple[int, int]]:
    (part,) = opened(around, token).parts
    return {(s.partition, o) for s in part.spans for o in range(s.start, s.end)}


def test_a_key_is_for_one_request(known: Known, ingress: httpx2.Client) -> None:
    key = fresh_key()
    send(ingress, known, key).raise_for_status()
    headers = {**NDJSON, "Idempotency-Key": key}
    question = {"pipeline": known.record.name, "input": "orders"}
    others = [
        send(ingress, known, key, ROWS + "\n"),
        ingress.post(f"{known.path}?atomic=true", content=ROWS, headers=headers),
        ingress.post("/v1/tokens", json=question, headers={"Idempotency-Key": key}),
        ingress.post(f"/v1/pipelines/{known.record.name}/stop", headers={"Idempotency-Key": key}),
    ]
    for answer in others:
        assert answer.status_code == 422, answer.text
        assert answer.json()["type"] == "urn:waybill:problem:key_reused"
    assert send(ingress, known, key).headers["Idempotent-Replayed"] == "true"


@pytest.mark.parametrize("key", [b"", b"a" * 256, b"a\tb", b"\xc3\xa9"])
def test_a_key_that_is_none_is_refused(known: Known, ingress: httpx2.Client, key: bytes) -> None:
    headers = [(b"Content-Type", b"application/x-ndjson"), (b"Idempotency-Key", key)]
    answer = ingress.post(known.path, content=ROWS, headers=headers)
    assert answer.status_code == 400
    assert answer.json()["type"] == "urn:waybill:problem:bad_idempotency_key"


def test_what_was_refused_before_anything_was_written_is_not_remembered(
    surroundings: Surroundings, known: Known, ingress: httpx2.Client, other: httpx2.Client
) -> None:
    key, order = fresh_key(), uuid.uuid4().hex
    for client in (ingress, other):
        answer = done(partial(send, client, known, key, "nothing"))
        assert answer.status_code == 422
        assert answer.json()["type"] == "urn:waybill:problem:records_rejected"
        assert "Idempotent-Replayed" not in answer.headers
    mended = done(lambda: send(other, known, key, f'{{"customer": "{order}"}}'))
    assert mended.status_code == 200
    assert len(written(surroundings, known, order)) == 1


@pytest.mark.parametrize(
    "point", ["request.claimed", "request.before_commit", "request.after_commit"]
)
def test_killed_at_any_point_it_was_written_once(
    surroundings: Surroundings, known: Known, doomed: Process, other: httpx2.Client, point: str
) -> None:
    key, order = fresh_key(), uuid.uuid4().hex
    rows = f'{{"order_id": 1, "customer": "{order}"}}\n{{"order_id": 2, "customer": "{order}"}}'
    doomed.arm(point)
    with ThreadPoolExecutor() as pool:
        first = pool.submit(send, doomed.http, known, key, rows)
        doomed.reached(point)
        os.kill(doomed.pid, signal.SIGKILL)
        with pytest.raises(httpx2.TransportError):
            first.result()
    again = done(lambda: send(other, known, key, rows))
    assert again.status_code == 200, again.text
    places = written(surroundings, known, order)
    assert len(places) == 2
    assert covered(surroundings, again.json()["token"]) == set(places)
    assert ("Idempotent-Replayed" in again.headers) == (point == "request.after_commit")
    repeated = done(lambda: send(other, known, key, rows))
    assert repeated.content == again.content


@pytest.mark.parametrize("point", ["request.claimed", "request.before_commit"])
def test_one_that_was_paused_adds_nothing_when_another_has_answered(
    surroundings: Surroundings, known: Known, doomed: Process, other: httpx2.Client, point: str
) -> None:
    key, order = fresh_key(), uuid.uuid4().hex
    rows = f'{{"order_id": 1, "customer": "{order}"}}'
    doomed.arm(point)
    with ThreadPoolExecutor() as pool:
        first = pool.submit(send, doomed.http, known, key, rows)
        doomed.reached(point)
        os.kill(doomed.pid, signal.SIGSTOP)
        doomed.go_on(point)
        again = done(lambda: send(other, known, key, rows))
        os.kill(doomed.pid, signal.SIGCONT)
        if (late := first.result()).status_code == 409:  # it has not heard of the answer yet
            late = done(partial(send, doomed.http, known, key, rows))
    assert again.status_code == 200, again.text
    places = written(surroundings, known, order)
    assert len(places) == 1
    assert covered(surroundings, again.json()["token"]) == set(places)
    assert late.content == again.content, late.text
    assert late.headers["Idempotent-Replayed"] == "true"


def test_two_at_the_same_time_are_one(
    surroundings: Surroundings, known: Known, ingress: httpx2.Client, other: httpx2.Client
) -> None:
    key, order = fresh_key(), uuid.uuid4().hex
    rows = f'{{"order_id": 1, "customer": "{order}"}}'
    with ThreadPoolExecutor(16) as pool:
        clients = [ingress, other] * 8
        asked = [pool.submit(done, partial(send, each, known, key, rows)) for each in clients]
        answers = {each.result().content for each in asked}
    assert len(answers) == 1
    assert len(written(surroundings, known, order)) == 1


def test_what_kafka_never_takes_is_refused_whole_and_harms_no_other(
    surroundings: Surroundings, admin: KafkaAdmin, known: Known, ingress: httpx2.Client
) -> None:
    """A record that a topic does not take ends the transaction of all that are in it."""
    compacted = make_pipeline(surroundings, admin, ingress, config={"cleanup.policy": "compact"})
    good, refused = uuid.uuid4().hex, uuid.uuid4().hex
    rows = f'{{"customer": "{refused}"}}\n{{"order_id": 1}}'
    with ThreadPoolExecutor(32) as pool:
        keys = [fresh_key() for _ in range(16)]
        bad = [pool.submit(send, ingress, compacted, key, rows) for key in keys]
        others = [
            pool.submit(
                done, partial(send, ingress, known, fresh_key(), f'{{"customer": "{good}"}}')
            )
            for _ in range(16)
        ]
        assert {each.result().status_code for each in others} == {200}
        for answer in (each.result() for each in bad):
            assert answer.status_code == 422, answer.text
            assert answer.json()["type"] == "urn:waybill:problem:records_refused_by_kafka"
    assert written(surroundings, compacted, refused) == []
    assert len(written(surroundings, known, good)) == 16
    mended = f'{{"customer": "{refused}"}}'
    assert done(partial(send, ingress, compacted, keys[0], mended)).json()["accepted"] == 1
    assert len(written(surroundings, compacted, refused)) == 1


def test_a_token_is_asked_for_once(known: Known, ingress: httpx2.Client) -> None:
    question = {"pipeline": known.record.name, "input": "orders"}
    headers = {"Idempotency-Key": fresh_key()}
    first = ingress.post("/v1/tokens", json=question, headers=headers)
    again = ingress.post("/v1/tokens", json=question, headers=headers)
    assert first.status_code == 200, first.text
    assert again.content == first.content
    assert first.headers["Location"] == f"/v1/tokens/{first.json()['token']}"


def test_a_command_is_sent_once(
    surroundings: Surroundings, known: Known, ingress: httpx2.Client, other: httpx2.Client
) -> None:
    path = f"/v1/pipelines/{known.record.name}/stop?wait=0"
    headers = {"Idempotency-Key": fresh_key()}
    first = ingress.post(path, headers=headers)
    again = done(lambda: other.post(path, headers=headers))
    assert first.status_code == 202, first.text
    assert again.status_code == 202
    assert again.content == first.content
    assert again.headers["Location"] == first.headers["Location"]
    assert commands(surroundings).count(first.json()["operation"]) == 1


def commands(around: Surroundings) -> list[str]:
    """Ids of all commands that count."""
    topic = f"{around.prefix}.commands"
    return [
        decode(Command, message.value() or b"").id
        for message in read_to_end(around.kafka, topic, range(8))
    ]


def test_killed_while_it_waits_for_the_end_of_a_command_it_was_sent_once(
    surroundings: Surroundings, known: Known, doomed: Process, other: httpx2.Client
) -> None:
    path = f"/v1/pipelines/{known.record.name}/stop?wait=10"
    headers = {"Idempotency-Key": fresh_key()}
    before = len(commands(surroundings))
    with ThreadPoolExecutor() as pool:
        first = pool.submit(doomed.http.post, path, headers=headers)
        eventually(lambda: len(commands(surroundings)) > before, within_s=WAIT_S)
        os.kill(doomed.pid, signal.SIGKILL)
        with pytest.raises(httpx2.TransportError):
            first.result()
    again = done(lambda: other.post(path, headers=headers))
    assert again.status_code == 202, again.text
    assert commands(surroundings)[before:] == [again.json()["operation"]]


def test_the_sdk_sends_each_record_once_over_a_road_that_loses_every_third_answer(
    surroundings: Surroundings, known: Known, ingress: httpx2.Client
) -> None:
    marks = [uuid.uuid4().hex for _ in range(SENDS)]
    port = ingress.base_url.port
    assert port is not None
    with DroppingRoad(lambda: port, every(3)) as road, Client(road.url) as client:
        client.token_for(known.record.name, input="orders")  # it has heard of Waybill
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda mark: sent(client, known, mark), marks))
    assert all_written(surroundings, known, marks) == dict.fromkeys(marks, 1)


def sent(client: Client, known: Known, mark: str) -> None:
    assert client.send(known.record.name, "orders", [{"customer": mark}]).accepted == 1


def all_written(around: Surroundings, known: Known, marks: list[str]) -> Counter[str]:
    """How often each of these customers stands in the topic."""
    values = (json.loads(value or b"{}") for _, value in stored(around, known.topic).values())
    return Counter(value["customer"] for value in values if value.get("customer") in set(marks))


def test_many_clients_with_few_keys_while_processes_are_killed_and_answers_lost(
    surroundings: Surroundings, known: Known, tmp_path: Path
) -> None:
    marks = [uuid.uuid4().hex for _ in range(KEYS)]
    dice = random.Random(4)
    with ExitStack() as stack:
        alive = [stack.enter_context(an_ingress(surroundings, tmp_path)) for _ in range(2)]
        road = DroppingRoad(lambda: dice.choice(alive).port, sometimes(0.1, seed=5))
        stack.enter_context(road)
        with ThreadPoolExecutor(CLIENTS) as pool:
            asked = [pool.submit(ask_all, road.url, known, marks, n) for n in range(CLIENTS)]
            for number in (0, 1, 0):
                time.sleep(1.0)  # the faults come at any moment
                os.kill(alive[number].pid, signal.SIGKILL)
                alive[number] = stack.enter_context(an_ingress(surroundings, tmp_path))
            answers = [each.result() for each in asked]
    assert sum(map(len, answers)) == CLIENTS * REQUESTS
    tokens: dict[str, set[str]] = {}
    for mark, token in (each for answer in answers for each in answer):
        tokens.setdefault(mark, set()).add(token)
    assert {mark: len(found) for mark, found in tokens.items()} == dict.fromkeys(marks, 1)
    assert all_written(surroundings, known, marks) == dict.fromkeys(marks, 1)
    for mark, (token,) in tokens.items():
        assert covered(surroundings, token) == set(written(surroundings, known, mark))


def ask_all(url: str, known: Known, marks: list[str], seed: int) -> list[tuple[str, str]]:
    """Each request until it is answered: its mark, and the token."""
    dice, found = random.Random(seed), []
    with httpx2.Client(base_url=url, timeout=WAIT_S) as client:
        for mark in dice.choices(marks, k=REQUESTS):
            answer = answered(client, known, mark)
            found.append((mark, answer.json()["token"]))
    return found


def answered(client: httpx2.Client, known: Known, mark: str) -> httpx2.Response:
    deadline = time.monotonic() + WAIT_S
    while True:
        assert time.monotonic() < deadline
        try:
            answer = send(client, known, mark, f'{{"customer": "{mark}"}}')
        except httpx2.TransportError:
            continue
        if answer.status_code == httpx2.codes.OK:
            return answer
        assert answer.status_code in (404, 409, 503), answer.text
        time.sleep(0.05)


def test_an_answer_that_names_thousands_of_rows_is_repeated_too(
    known: Known, ingress: httpx2.Client
) -> None:
    twice = '{{"{0:a>90}": 1, "{0:a>90}": 2}}'
    rows = '{"customer": "ada"}\n' + "\n".join(twice.format(number) for number in range(9_000))
    key = fresh_key()
    first = send(ingress, known, key, rows)
    assert first.status_code == 200, first.text[:500]
    assert len(first.json()["rejected"]) == 9_000
    assert len(first.content) > 1_048_576, "more than a message of Kafka has, if nobody says so"
    assert send(ingress, known, key, rows).content == first.content


def test_no_message_hides_another_from_who_compacts(
    surroundings: Surroundings, known: Known, ingress: httpx2.Client, other: httpx2.Client
) -> None:
    """A compacted topic keeps the last message of a key: none of ours is needed beside it."""
    for client in (ingress, other, ingress):
        done(partial(send, client, known, KEPT))
    claims = [m.key() for m in read_to_end(surroundings.kafka, topic_of(surroundings), range(8))]
    assert len(claims) == len(set(claims))
    topic = f"{surroundings.prefix}.answers"
    last: dict[object, RequestAnswer] = {}
    for message in read_to_end(surroundings.kafka, topic, range(8)):
        told = decode(RequestAnswer, message.value() or b"")
        before = last.get(message.key())
        assert before is None or (before.status == 0 and before.operation == told.operation)
        last[message.key()] = told


def topic_of(around: Surroundings) -> str:
    return f"{around.prefix}.requests"


def test_dead_letters_that_are_sent_once_more_with_a_key_are_sent_once_more_once(
    surroundings: Surroundings, admin: KafkaAdmin, ingress: httpx2.Client, other: httpx2.Client
) -> None:
    grave = Grave(surroundings, admin)
    grave.tell()
    letter = grave.bury(3, value=b"{")
    path = f"/v1/pipelines/{grave.record.name}/dead-letters/replay"
    body, headers = {"ids": [str(letter)], "again": True}, {"Idempotency-Key": fresh_key()}
    eventually(lambda: ingress.get("/readyz").status_code == 200)
    first = done(lambda: ingress.post(path, json=body, headers=headers))
    assert first.status_code == 200, first.text
    assert first.json()["replayed"] == 1
    again = done(lambda: other.post(path, json=body, headers=headers))
    assert again.content == first.content
    assert len(grave.standing()) == 1
    once_more = {"Idempotency-Key": fresh_key()}
    assert done(lambda: ingress.post(path, json=body, headers=once_more)).json()["replayed"] == 1
    assert len(grave.standing()) == 2
