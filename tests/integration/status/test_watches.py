"""Watches are told once by two processes of status, also when one of them stands still while it
tells: real processes, and Kafka's transactions."""

import os
import signal
import uuid
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest

from builders import TENANT
from integration.conftest import Serving, Surroundings, serving
from integration.waiting import eventually
from waybill_shared.contract import codec
from waybill_shared.contract.status_events import StatusEvent
from waybill_shared.contract.watches import TokenWatch
from waybill_shared.contract.words import WatchEnd, WatchState
from waybill_shared.kafka.clients import make_producer, read_to_end
from waybill_shared.process.clock import SystemClock
from waybill_shared.process.failpoints import FOLDER, REACHED

WITHIN_S = 120.0
WATCHES = 24


@pytest.fixture
def failpoints(tmp_path: Path) -> Path:
    folder = tmp_path / "failpoints"
    folder.mkdir()
    return folder


def begin(surroundings: Surroundings, count: int = WATCHES) -> list[str]:
    """Watches of tokens that expire at once: what is told of them needs no pipeline."""
    producer = make_producer(surroundings.kafka)
    names = [uuid.uuid4().hex for _ in range(count)]
    for name in names:
        now_ms = SystemClock().now_ms()
        watch = TokenWatch(
            id=name,
            tenant=TENANT,
            actor="key",
            token="wb1.none",
            at=now_ms,
            expires_at=now_ms - 1,
            state=WatchState.OPEN,
            labels={},
        )
        producer.produce(f"{surroundings.prefix}.watches", key=name, value=codec.encode(watch))
    assert producer.flush(30) == 0
    return names


def told(surroundings: Surroundings) -> Counter[str]:
    """By watch, how often a reader of committed records is told."""
    found: Counter[str] = Counter()
    for message in read_to_end(surroundings.kafka, f"{surroundings.prefix}.status", range(8)):
        event = codec.decode(StatusEvent, message.value() or b"")
        assert event.data["ended_as"] == WatchEnd.EXPIRED
        found[event.subject] += 1
    return found


def test_one_that_stands_still_while_it_tells_is_shut_out(
    surroundings: Surroundings, failpoints: Path, tmp_path: Path
) -> None:
    with ExitStack() as stack:

        def start(name: str, **settings: str) -> Serving:
            environment = {**surroundings.environment, **settings}
            return stack.enter_context(serving("status", environment, tmp_path / f"{name}.log"))

        for partition in range(8):
            (failpoints / f"{surroundings.prefix}.status.{partition}.before_commit").touch()
        first = start("first", **{FOLDER: str(failpoints)})
        names = begin(surroundings)
        eventually(lambda: any(failpoints.glob(f"*{REACHED}")), within_s=WITHIN_S)
        os.kill(first.pid, signal.SIGSTOP)
        try:
            start("second")
            eventually(lambda: told(surroundings).keys() == {*names}, within_s=WITHIN_S)
        finally:
            os.kill(first.pid, signal.SIGCONT)
        for point in failpoints.iterdir():
            point.unlink()
        later = begin(surroundings)
        eventually(lambda: told(surroundings).keys() == {*names, *later}, within_s=WITHIN_S)
        assert told(surroundings) == Counter([*names, *later])
