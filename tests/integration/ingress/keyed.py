"""Writes with an Idempotency-Key, by processes that may be killed or paused."""

import json
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2

from integration.conftest import Serving, Surroundings, serving
from integration.ingress.test_records import NDJSON, Known, opened, stored
from integration.waiting import eventually
from waybill_shared.contract.codec import decode
from waybill_shared.contract.events import Command
from waybill_shared.kafka.clients import read_to_end
from waybill_shared.process.failpoints import FOLDER, REACHED

PATIENCE_S = 2
WAIT_S = 120.0
ROWS = '{"order_id": 1, "customer": "ada"}\n{"order_id": 2, "customer": "bob"}\nx\n'
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


def written(around: Surroundings, known: Known, order: str) -> list[tuple[int | None, int | None]]:
    """Where records with this text stand, for readers of committed ones."""
    found = stored(around, known.topic).items()
    return [place for place, (_, value) in found if value is not None and order in value.decode()]


def covered(around: Surroundings, token: str) -> set[tuple[int, int]]:
    (part,) = opened(around, token).parts
    return {(s.partition, o) for s in part.spans for o in range(s.start, s.end)}


def all_written(around: Surroundings, known: Known, marks: list[str]) -> Counter[str]:
    """How often each of these customers stands in the topic."""
    values = (json.loads(value or b"{}") for _, value in stored(around, known.topic).values())
    return Counter(value["customer"] for value in values if value.get("customer") in set(marks))


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


def commands(around: Surroundings) -> list[str]:
    """Ids of all commands that count."""
    topic = f"{around.prefix}.commands"
    return [
        decode(Command, message.value() or b"").id
        for message in read_to_end(around.kafka, topic, range(8))
    ]
