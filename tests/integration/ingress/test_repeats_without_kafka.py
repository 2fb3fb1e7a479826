"""Kafka is away for a while: a write with a key is carried out once all the same."""

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest

from integration.brokers import own_broker
from integration.conftest import StartService, Surroundings, make_surroundings
from integration.ingress.keyed import all_written, answered
from integration.ingress.test_records import Known, make_pipeline
from waybill_local.ports import address, pick
from waybill_local.processes import Child
from waybill_shared.kafka.admin import make_admin

AWAY_S = 10.0
BETWEEN_S = 0.5
MARKS, CLIENTS = 60, 12


@pytest.fixture(scope="module")
def ports() -> dict[str, int]:
    return pick({"kafka": 0, "controller": 0})


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, ports: dict[str, int]) -> Iterator[Child]:
    with own_broker(tmp_path_factory, ports) as child:
        yield child


@pytest.fixture(scope="module")
def surroundings(
    broker: Child, ports: dict[str, int], tmp_path_factory: pytest.TempPathFactory
) -> Surroundings:
    nowhere = "redis://127.0.0.1:1/0"  # ingress has no use for it
    return make_surroundings(address(ports["kafka"]), nowhere, tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="module")
def known(surroundings: Surroundings, ingress: httpx2.Client) -> Known:
    return make_pipeline(surroundings, make_admin(surroundings.kafka), ingress)


@pytest.fixture(scope="module")
def ingress(start_service: StartService) -> Iterator[httpx2.Client]:
    url = start_service("ingress", WAYBILL_INGRESS_KEY_PATIENCE_S="2")
    with httpx2.Client(base_url=url, timeout=120) as client:
        yield client


def test_kafka_that_is_stopped_for_ten_seconds_has_each_record_once(
    surroundings: Surroundings, known: Known, ingress: httpx2.Client, broker: Child
) -> None:
    marks = [f"mark-{number}" for number in range(MARKS)]
    begun = threading.Event()

    def ask(mark: str) -> str:
        begun.set()
        token: str = answered(ingress, known, mark).json()["token"]
        time.sleep(BETWEEN_S)
        assert answered(ingress, known, mark).json()["token"] == token
        return token

    with ThreadPoolExecutor(CLIENTS) as pool:
        asked = [pool.submit(ask, mark) for mark in marks]
        begun.wait()
        os.kill(broker.process.pid, signal.SIGSTOP)
        time.sleep(AWAY_S)
        os.kill(broker.process.pid, signal.SIGCONT)
        tokens = Counter(each.result() for each in asked)
    assert len(tokens) == MARKS
    assert all_written(surroundings, known, marks) == dict.fromkeys(marks, 1)
