"""More partitions for the topic of an input: only more, up to a limit, and only if confirmed."""

import pytest
from fastapi.testclient import TestClient

from unit.ingress.fakes import FakeKafka

PATH = "/v1/pipelines/orders/inputs/orders/grow"


def test_the_topic_has_so_many_partitions(client: TestClient, kafka: FakeKafka) -> None:
    answer = client.post(PATH, json={"partitions": 5}, params={"yes": "true"})
    assert answer.status_code == 200
    assert answer.json() == {"topic": "orders.in", "partitions": 5, "added": 3}
    assert kafka.grown == [("orders.in", 5)]


def test_to_ask_again_changes_nothing(client: TestClient, kafka: FakeKafka) -> None:
    answer = client.post(PATH, json={"partitions": 2})
    assert answer.json() == {"topic": "orders.in", "partitions": 2, "added": 0}
    assert kafka.grown == []


@pytest.mark.parametrize(
    ("partitions", "params", "message"),
    [
        (5, {}, "keys move"),
        (1, {"yes": "true"}, "has 2 partitions"),
        (9, {"yes": "true"}, "8 partitions at most"),
        (0, {"yes": "true"}, "greater than or equal to 1"),
    ],
)
def test_what_is_not_possible_or_not_confirmed_is_refused(
    client: TestClient, kafka: FakeKafka, partitions: int, params: dict[str, str], message: str
) -> None:
    answer = client.post(PATH, json={"partitions": partitions}, params=params)
    assert answer.status_code == 422
    assert message in answer.text
    assert kafka.grown == []


def test_only_inputs_of_the_pipeline_grow(client: TestClient, kafka: FakeKafka) -> None:
    path = "/v1/pipelines/orders/inputs/other/grow"
    answer = client.post(path, json={"partitions": 5}, params={"yes": "true"})
    assert (answer.status_code, kafka.grown) == (404, [])


def test_a_topic_that_was_created_again_does_not_grow(client: TestClient, kafka: FakeKafka) -> None:
    kafka.topic_id = "another"
    answer = client.post(PATH, json={"partitions": 5}, params={"yes": "true"})
    assert answer.json()["type"].endswith(":topic_recreated")
    assert kafka.grown == []
