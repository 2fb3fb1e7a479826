"""Writes with an Idempotency-Key are carried out once, whoever is killed, paused or cut off."""

import os
import random
import signal
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import httpx2
import pytest

from integration.conftest import Surroundings
from integration.ingress.dropping import DroppingRoad, every, sometimes
from integration.ingress.keyed import (
    WAIT_S,
    Process,
    all_written,
    an_ingress,
    answered,
    commands,
    covered,
    done,
    fresh_key,
    send,
    written,
)
from integration.ingress.letters import Grave
from integration.ingress.test_records import Known
from integration.waiting import eventually
from waybill import Client
from waybill_shared.kafka.admin import KafkaAdmin

SENDS = 120
KEYS, CLIENTS, REQUESTS = 50, 200, 50


@pytest.fixture
def doomed(surroundings: Surroundings, tmp_path: Path, known: Known) -> Iterator[Process]:
    """Of this test alone; it knows the pipeline."""
    with an_ingress(surroundings, tmp_path) as process:
        question = {"pipeline": known.record.name, "input": "orders"}
        eventually(lambda: process.http.post("/v1/tokens", json=question).status_code == 200)
        yield process


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


def test_a_replay_that_was_carried_out_by_who_was_killed_is_nobody_elses(
    surroundings: Surroundings, admin: KafkaAdmin, doomed: Process, other: httpx2.Client
) -> None:
    """It has a transaction of its own, before that of its answer."""
    grave = Grave(surroundings, admin)
    grave.tell()
    letters = [str(grave.bury(offset, value=b"{")) for offset in (3, 4)]
    path = f"/v1/pipelines/{grave.record.name}/dead-letters/replay"
    headers = {"Idempotency-Key": fresh_key()}

    def replay(client: httpx2.Client, *ids: str) -> httpx2.Response:
        return client.post(path, json={"ids": ids, "again": True}, headers=headers)

    doomed.arm("request.before_commit")
    with ThreadPoolExecutor() as pool:
        first = pool.submit(replay, doomed.http, *letters)
        doomed.reached("request.before_commit")
        os.kill(doomed.pid, signal.SIGKILL)
        with pytest.raises(httpx2.TransportError):
            first.result()
    another = done(partial(replay, other, letters[0]))
    assert another.status_code == 422, another.text
    assert another.json()["type"] == "urn:waybill:problem:key_reused"
    answer = done(partial(replay, other, *letters))
    assert (answer.json()["replayed"], answer.json()["already"]) == (2, 0)
    assert len(grave.asked()) == 2
