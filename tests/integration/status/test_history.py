"""The history of a pipeline over restarts of status: real processes, and Kafka's own offsets."""

import json
import uuid
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import httpx2
import pytest
from confluent_kafka import TopicPartition

from builders import TENANT
from integration.conftest import Surroundings, running
from integration.status.tracker import record_pipeline
from integration.topics import create_anew
from integration.waiting import eventually
from message_builders import make_lifecycle
from waybill_shared.contract import codec
from waybill_shared.contract.events import pipeline_key
from waybill_shared.kafka.admin import make_admin
from waybill_shared.kafka.clients import make_producer
from waybill_shared.kafka.partitioner import partition_of
from waybill_shared.process.clock import SystemClock

WITHIN_S = 60.0
DAY_MS = 86_400_000
IN_TRANSACTION = 31
OLD, NEW = 900, 60
STREAM = {"Accept": "text/event-stream"}


class Life:
    """A pipeline, and what happens to it. `numbers` is how many events it has."""

    def __init__(self, around: Surroundings, folder: Path) -> None:
        self._around = around
        self._folder = folder
        self.uid = record_pipeline(around)
        self.path = f"/v1/pipelines/orders-{self.uid[:8]}/events"
        self.topic = f"{around.prefix}.lifecycle"
        self.partition = partition_of(pipeline_key(TENANT, self.uid), 8)
        self.numbers = 0

    def happen(self, count: int, *, days_ago: int = 0) -> None:
        """Write events in transactions, with those of another pipeline in the same partition."""
        at = SystemClock().now_ms() - days_ago * DAY_MS
        producer = make_producer(self._around.kafka, **{"transactional.id": self.uid})
        producer.init_transactions(WITHIN_S)
        while count:
            producer.begin_transaction()
            for _ in range(min(count, IN_TRANSACTION)):
                for uid in (self.uid, "another")[: 1 + self.numbers % 2]:  # some follow each other
                    event = replace(make_lifecycle(at=at, uid=uid), reason=f"{self.numbers}")
                    key = pipeline_key(TENANT, uid)
                    producer.produce(
                        self.topic, codec.encode(event), key, self.partition, timestamp=at
                    )
                self.numbers += 1
                count -= 1
            producer.commit_transaction(WITHIN_S)

    @contextmanager
    def status(self) -> Iterator[httpx2.Client]:
        log = self._folder / f"{uuid.uuid4().hex}.log"
        with (
            running("status", self._around.environment, log) as url,
            httpx2.Client(base_url=url, timeout=WITHIN_S, verify=False) as client,
        ):
            eventually(lambda: client.get(self.path).status_code == httpx2.codes.OK)
            yield client

    def page(self, status: httpx2.Client, **asked: str | int) -> dict[str, Any]:
        answer = status.get(self.path, params={**asked})
        assert answer.status_code == httpx2.codes.OK, answer.text
        page: dict[str, Any] = answer.json()
        return page

    def known(self, status: httpx2.Client, **asked: str) -> list[int] | None:
        """Return the numbers of the events; None while status cannot say."""
        answer = status.get(self.path, params={**asked})
        return numbers(answer.json()["items"]) if answer.is_success else None

    def stream(self, status: httpx2.Client, after: str) -> Generator[dict[str, Any], None, None]:
        """Each event of a stream; a word where there is a gap."""
        headers = {**STREAM, "Last-Event-ID": after}
        with status.stream("GET", self.path, headers=headers) as stream:
            for line in stream.iter_lines():
                if line.startswith("data: "):
                    yield json.loads(line.removeprefix("data: "))


@pytest.fixture
def life(around: Surroundings, tmp_path: Path) -> Life:
    return Life(around, tmp_path)


def numbers(events: list[dict[str, Any]]) -> list[int]:
    return [int(each["reason"]) for each in events]


def test_pages_have_each_event_once_while_status_restarts_between_them(life: Life) -> None:
    life.happen(OLD, days_ago=2)
    life.happen(NEW)
    back: list[dict[str, Any]] = []
    forward: list[dict[str, Any]] = []
    before, after = dict[str, str](), {"after": "0"}
    for _ in range(2):  # the second process goes on where the first one was
        with life.status() as status:
            for _ in range(3):
                page = life.page(status, limit=170, **before)
                back, before = [*page["items"], *back], {"cursor": page["next_cursor"]}
                page = life.page(status, limit=170, **after)
                forward, after = [*forward, *page["items"]], {"cursor": page["next_cursor"]}
    assert numbers(back) == numbers(forward) == [*range(OLD + NEW)]
    assert before == after == {"cursor": None}, "there are no more"
    assert len({each["id"] for each in back}) == OLD + NEW


def test_a_stream_has_each_event_once_over_restarts_of_status(life: Life) -> None:
    life.happen(OLD, days_ago=2)
    life.happen(NEW)
    seen: list[dict[str, Any]] = []
    for count in (100, OLD + 10 - 100, NEW):
        with life.status() as status:
            stream = life.stream(status, seen[-1]["id"] if seen else "0")
            seen += islice(stream, count)
            life.happen(10)  # the next process has them in its stream
            stream.close()
    with life.status() as status:
        stream = life.stream(status, seen[-1]["id"])
        seen += islice(stream, life.numbers - len(seen))
        life.happen(1)
        seen += islice(stream, 1)
        stream.close()
    assert numbers(seen) == [*range(life.numbers)]


def test_what_retention_has_deleted_is_a_gap_with_a_word(life: Life, around: Surroundings) -> None:
    life.happen(30, days_ago=2)
    admin = make_admin(around.kafka)
    with life.status() as status:
        items = life.page(status, after="0")["items"]
        assert numbers(items) == [*range(30)]
        start = int(items[20]["id"].split(".")[-1])
        place = TopicPartition(life.topic, life.partition, start)
        admin.client.delete_records([place])[place].result()
        eventually(lambda: admin.starts(life.topic, [life.partition])[life.partition] == start)

        page = life.page(status, after=items[3]["id"])
        assert (page["gap"], numbers(page["items"])) == ("expired", [*range(20, 30)])
        assert life.page(status, after=items[25]["id"])["gap"] is None
        assert life.page(status)["next_cursor"] is None
        stream = life.stream(status, items[3]["id"])
        first, second = islice(stream, 2)
        stream.close()
        assert (first, second["reason"]) == ({"gap": "expired"}, "20")


def test_a_topic_that_is_created_again_is_not_misread(life: Life, around: Surroundings) -> None:
    life.happen(30, days_ago=2)
    life.happen(30)
    with life.status() as status:
        old = life.page(status)["items"]
        create_anew(around, "lifecycle")
        life.happen(40)
        eventually(lambda: life.known(status, after="0") == [*range(60, 100)])
        page = life.page(status, after=old[3]["id"])
        assert (page["gap"], numbers(page["items"])) == ("topic_recreated", [*range(60, 100)])
        life.happen(1)
        eventually(lambda: life.known(status) == [*range(60, 101)])
    with life.status() as status:
        page = life.page(status, after=old[3]["id"])
        assert (page["gap"], numbers(page["items"])) == ("topic_recreated", [*range(60, 101)])
