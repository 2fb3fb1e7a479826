"""Ingress over HTTP, with Kafka and the answers of runners in memory."""

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from local_client import local_client
from unit.ingress.fakes import FakeAnswers, FakeKafka
from unit.ingress.in_memory import make_app


@pytest.fixture
def kafka() -> FakeKafka:
    return FakeKafka()


@pytest.fixture
def answers() -> FakeAnswers:
    return FakeAnswers()


@pytest.fixture
def client(kafka: FakeKafka, answers: FakeAnswers) -> Iterator[TestClient]:
    app = make_app(kafka, answers=answers)
    with local_client(app, raise_server_exceptions=False) as client:
        yield client
