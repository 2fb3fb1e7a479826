"""Who heard of a cluster without brokers finds them again: `waybill_shared.kafka.admin`.

A single broker tells that of itself when its controller has not heard it for some seconds. Here the
way to the controller loses its heartbeats.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from confluent_kafka.admin import NewTopic

from integration.brokers import own_broker
from integration.lossy import BROKER_HEARTBEAT, LossyRoad
from integration.waiting import eventually
from waybill_local.ports import HOST, address, pick
from waybill_shared.contract.errors import Retryable
from waybill_shared.kafka import admin as kafka_admin
from waybill_shared.kafka.admin import KafkaAdmin, make_admin
from waybill_shared.kafka.topics import create_missing

TOPIC = "asked.about"
CLIENTS = 24  # of those that are not replaced, about one of eight finds no broker any more
TIMEOUT_S = 5.0
SESSION_MS = 4_000  # silent for so long, it is no broker any more
BACK_WITHIN_S = 120.0


class Asker:
    """Asks one question after another, until it is told to stop."""

    def __init__(self, kafka: str, gap_s: float) -> None:
        self._admin = make_admin(kafka)
        self._gap_s = gap_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.answered_at = 0.0

    def __enter__(self) -> "Asker":
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self._gap_s):
            try:
                asked_at = time.monotonic()
                self._admin.identify([TOPIC])
                self.answered_at = asked_at
            except Retryable:
                pass


@pytest.fixture
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, LossyRoad]]:
    ports = pick({"kafka": 0, "controller": 0})
    with LossyRoad(ports["controller"]) as road:
        settings = {
            "controller.quorum.voters": f"1@{HOST}:{road.port}",
            "broker.session.timeout.ms": SESSION_MS,
        }
        with own_broker(tmp_path_factory, ports, settings=settings):
            yield address(ports["kafka"]), road


def brokers(admin: KafkaAdmin) -> int:
    return len(admin.client.list_topics(TOPIC, timeout=TIMEOUT_S).brokers)


@contextmanager
def unheard(road: LossyRoad) -> Iterator[None]:
    road.close_to(BROKER_HEARTBEAT)
    yield
    road.open_to(BROKER_HEARTBEAT)


def test_who_heard_of_no_brokers_finds_them_again(
    kafka: tuple[str, LossyRoad], monkeypatch: pytest.MonkeyPatch
) -> None:
    where, road = kafka
    monkeypatch.setattr(kafka_admin, "ADMIN_TIMEOUT_S", TIMEOUT_S)
    create_missing(make_admin(where), [NewTopic(TOPIC, 1, 1)])
    askers = [Asker(where, 0.03 + 0.01 * number) for number in range(CLIENTS)]

    with ExitStack() as stack:
        for asker in askers:
            stack.enter_context(asker)
        eventually(lambda: all(asker.answered_at for asker in askers))
        with unheard(road):
            eventually(lambda: brokers(make_admin(where)) == 0)
        eventually(lambda: brokers(make_admin(where)) == 1)
        back = time.monotonic()

        eventually(
            lambda: all(asker.answered_at > back for asker in askers), within_s=BACK_WITHIN_S
        )
