"""Kafka has written, and its acknowledgement is lost on the way: what the token says all the same.

A broker of its own whose clients are sent to a road that loses answers.
"""

import json
from collections.abc import Iterator

import httpx2
import pytest

from integration.brokers import own_broker
from integration.conftest import StartService, Surroundings, make_surroundings
from integration.ingress.test_records import Known, make_pipeline, opened
from integration.lossy import LIST_OFFSETS, PRODUCE, LossyRoad
from waybill_local.ports import address, pick
from waybill_shared.contract.vectors import Span
from waybill_shared.kafka.admin import KafkaAdmin, make_admin
from waybill_shared.kafka.clients import make_producer, produce_and_wait, read_to_end

NDJSON = {"Content-Type": "application/x-ndjson"}
DELIVERY_TIMEOUT_S = 4
ALWAYS = 1_000_000


@pytest.fixture(scope="module")
def road(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LossyRoad]:
    ports = pick({"kafka": 0, "controller": 0})
    with (
        LossyRoad(ports["kafka"]) as road,
        own_broker(tmp_path_factory, ports, advertised_port=road.port),
    ):
        yield road


@pytest.fixture(scope="module")
def surroundings(road: LossyRoad, tmp_path_factory: pytest.TempPathFactory) -> Surroundings:
    nowhere = "redis://127.0.0.1:1/0"  # ingress has no use for it
    return make_surroundings(address(road.port), nowhere, tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="module")
def admin(surroundings: Surroundings) -> KafkaAdmin:
    return make_admin(surroundings.kafka)


@pytest.fixture(scope="module")
def ingress(start_service: StartService) -> Iterator[httpx2.Client]:
    url = start_service("ingress", WAYBILL_INGRESS_DELIVERY_TIMEOUT_S=str(DELIVERY_TIMEOUT_S))
    with httpx2.Client(base_url=url, timeout=120) as client:
        yield client


@pytest.fixture
def known(surroundings: Surroundings, admin: KafkaAdmin, ingress: httpx2.Client) -> Known:
    """A pipeline whose input has one partition, so that a request is one answer of the broker."""
    return make_pipeline(surroundings, admin, ingress, partitions=1)


def send(ingress: httpx2.Client, known: Known, *numbers: int) -> httpx2.Response:
    body = "\n".join(json.dumps({"order_id": number}) for number in numbers)
    return ingress.post(known.path, content=body, headers=NDJSON)


def written(surroundings: Surroundings, known: Known) -> list[int]:
    found = read_to_end(surroundings.kafka, known.topic, [0])
    return [json.loads(message.value() or b"")["order_id"] for message in found]


def spans_of(surroundings: Surroundings, answer: httpx2.Response) -> tuple[Span, ...]:
    assert answer.status_code == httpx2.codes.OK, answer.text
    (part,) = opened(surroundings, answer.json()["token"]).parts
    return part.spans


def test_a_lost_acknowledgement_makes_neither_a_second_record_nor_another_place(
    surroundings: Surroundings, ingress: httpx2.Client, known: Known, road: LossyRoad
) -> None:
    send(ingress, known, 1, 2)
    road.lose(PRODUCE)
    lost = road.lost

    answer = send(ingress, known, 3, 4, 5)

    assert road.lost == lost + 1
    assert written(surroundings, known) == [1, 2, 3, 4, 5]
    exact = Span(topic_id=known.topic_id, partition=0, start=2, end=5)
    assert spans_of(surroundings, answer) == (exact,)


def test_an_acknowledgement_without_a_place_is_covered_up_to_the_end(
    surroundings: Surroundings, ingress: httpx2.Client, known: Known, road: LossyRoad
) -> None:
    send(ingress, known, 1, 2)
    road.lose(PRODUCE)
    road.forget()
    forgotten = road.forgotten

    answer = send(ingress, known, 3, 4, 5)

    assert road.forgotten == forgotten + 1
    assert answer.json()["accepted"] == 3
    assert written(surroundings, known) == [1, 2, 3, 4, 5]
    all_of_it = Span(topic_id=known.topic_id, partition=0, start=0, end=5)
    assert spans_of(surroundings, answer) == (all_of_it,)
    later = spans_of(surroundings, send(ingress, known, 6))
    assert later == (Span(topic_id=known.topic_id, partition=0, start=5, end=6),)


def test_what_others_write_meanwhile_only_makes_the_token_wait_for_more(
    surroundings: Surroundings, ingress: httpx2.Client, known: Known, road: LossyRoad
) -> None:
    stranger = make_producer(surroundings.kafka)
    produce_and_wait(stranger, known.topic, "", b'{"order_id": 1}')
    road.lose(PRODUCE)
    road.forget()
    answer = send(ingress, known, 2)
    produce_and_wait(stranger, known.topic, "", b'{"order_id": 3}')

    (span,) = spans_of(surroundings, answer)

    assert span.start == 1
    assert written(surroundings, known).index(2) < span.end <= 3


def test_without_a_place_and_without_an_end_there_is_no_token(
    surroundings: Surroundings, ingress: httpx2.Client, known: Known, road: LossyRoad
) -> None:
    send(ingress, known, 1)
    road.lose(PRODUCE)
    road.forget()
    road.lose(LIST_OFFSETS, ALWAYS)

    answer = send(ingress, known, 2)
    road.lose(LIST_OFFSETS, 0)

    assert answer.status_code == httpx2.codes.SERVICE_UNAVAILABLE
    assert "token" not in answer.json()
    assert "no token" in answer.json()["detail"]
    assert answer.json()["request_id"] == answer.headers["X-Request-Id"]
    assert "Retry-After" in answer.headers
    assert written(surroundings, known) == [1, 2]


def test_acknowledgements_that_never_come_make_no_token_and_harm_nobody_later(
    surroundings: Surroundings, ingress: httpx2.Client, known: Known, road: LossyRoad
) -> None:
    road.lose(PRODUCE, ALWAYS)

    answer = send(ingress, known, 1)
    road.lose(PRODUCE, 0)

    assert answer.status_code == httpx2.codes.SERVICE_UNAVAILABLE
    assert "token" not in answer.json()
    assert answer.json()["request_id"] == answer.headers["X-Request-Id"]
    assert written(surroundings, known) == [1], "kafka has it, and nobody may say so"
    (span,) = spans_of(surroundings, send(ingress, known, 2))
    assert written(surroundings, known) == [1, 2]
    assert span.end == 2
