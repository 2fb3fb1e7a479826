"""Writes with an Idempotency-Key, on a broker: once, and answered the same."""

import uuid
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import httpx2
import pytest

from integration.conftest import Surroundings
from integration.ingress.keyed import ROWS, commands, done, fresh_key, send, written
from integration.ingress.letters import Grave
from integration.ingress.test_records import NDJSON, Known, make_pipeline, opened, stored
from integration.waiting import eventually
from waybill_shared.contract.codec import decode
from waybill_shared.contract.requests import RequestAnswer
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.clients import read_to_end

KEPT = "kept by all"


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


def test_who_repeats_at_another_ingress_at_once_gets_the_answer_and_no_409(
    known: Known, ingress: httpx2.Client, other: httpx2.Client
) -> None:
    for _ in range(30):
        key = fresh_key()
        first = send(ingress, known, key)
        again = send(other, known, key)
        assert again.status_code == first.status_code == 200, again.text
        assert again.content == first.content


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
    assert len(grave.asked()) == 1
    once_more = {"Idempotency-Key": fresh_key()}
    assert done(lambda: ingress.post(path, json=body, headers=once_more)).json()["replayed"] == 1
    assert len(grave.asked()) == 2
