"""Runs and batches of a pipeline in pages: a real process, and the offsets of a real Kafka."""

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from builders import TENANT, make_batch, make_commit, make_fact, make_range
from integration.conftest import Surroundings, running
from integration.status.tracker import record_pipeline
from integration.topics import create_anew
from integration.waiting import eventually
from message_builders import make_lifecycle
from waybill_shared.contract import codec
from waybill_shared.contract.events import Message, pipeline_key
from waybill_shared.contract.run_words import TO_BE
from waybill_shared.kafka.clients import make_producer

WITHIN_S = 60.0
IN_TRANSACTION = 31
RUNS, BATCHES = 40, 300


class Past:
    """A pipeline with a past, of which other pipelines have some in the same partition."""

    def __init__(self, around: Surroundings, folder: Path) -> None:
        self._around = around
        self._folder = folder
        self.uid = record_pipeline(around)
        self.path = f"/v1/pipelines/orders-{self.uid[:8]}"
        producer = make_producer(around.kafka, **{"transactional.id": self.uid})
        producer.init_transactions(WITHIN_S)
        self._producer = producer

    def write(self, topic: str, messages: Sequence[Message]) -> None:
        for first in range(0, len(messages), IN_TRANSACTION):
            self._producer.begin_transaction()
            for message in messages[first : first + IN_TRANSACTION]:
                key = pipeline_key(TENANT, self.uid)
                self._producer.produce(f"{self._around.prefix}.{topic}", codec.encode(message), key)
            self._producer.commit_transaction(WITHIN_S)

    def run(self, count: int) -> None:
        """Run it so many times. Each run but the last is stopped."""
        events: list[Message] = []
        for number in range(1, count + 1):
            event = replace(make_lifecycle(uid=self.uid), run=number)
            starting = replace(event, phase_from="Stopped", phase="Starting", actor="ada")
            stopping = replace(
                event, phase="CheckpointStopping", reason=f"{TO_BE}stopped", actor="bob"
            )
            events += [starting, event]
            if number < count:
                events += [stopping, replace(event, phase="Stopped", at=number)]
        self.write("lifecycle", events)

    def commit(self, count: int) -> None:
        """Commit so many batches. Every tenth is reported again, as by another driver."""
        facts: list[Message] = []
        for number in range(count):
            report = make_batch(number, started_at=1_000, committed_at=1_500)
            commit = replace(make_commit(stage="load"), inputs=(make_range(number, number + 1),))
            again = replace(report, committed_at=1_000)
            reports = [report, again] if number % 10 == 0 else [report]
            for each in reports:
                facts.append(make_fact(replace(commit, batch=each), uid=self.uid))
                facts.append(make_fact(replace(commit, stage="other"), uid=self.uid))
        self.write("commits", facts)

    @contextmanager
    def status(self) -> Iterator[httpx2.Client]:
        log = self._folder / f"{uuid.uuid4().hex}.log"
        with (
            running("status", self._around.environment, log) as url,
            httpx2.Client(base_url=url, timeout=WITHIN_S, verify=False) as client,
        ):
            eventually(lambda: client.get(f"{self.path}/events").status_code == httpx2.codes.OK)
            yield client

    def walk(self, status: httpx2.Client, what: str, after: str = "") -> list[dict[str, Any]]:
        """Return the items of all pages, oldest first, each once."""
        found: list[dict[str, Any]] = []
        asked: dict[str, str] = {"after": after} if after else {}
        while True:
            answer = status.get(f"{self.path}/{what}", params={**asked, "limit": 37})
            assert answer.status_code == httpx2.codes.OK, answer.text
            page = answer.json()
            found = [*found, *page["items"]] if after else [*page["items"], *found]
            if page["next_cursor"] is None:
                assert len({each["id"] for each in found}) == len(found)
                return found
            asked = {"cursor": page["next_cursor"]}


@pytest.fixture
def past(around: Surroundings, tmp_path: Path) -> Past:
    return Past(around, tmp_path)


def test_each_run_is_in_the_pages_once_with_its_end(past: Past) -> None:
    past.run(RUNS)
    with past.status() as status:
        back = past.walk(status, "runs")
        assert back == past.walk(status, "runs", after="0")
    assert [each["run"] for each in back] == [*range(1, RUNS + 1)]
    assert {(each["end"], each["started_by"], each["ended_by"]) for each in back[:-1]} == {
        ("stopped", "ada", "bob")
    }
    assert (back[-1]["end"], back[-1]["phase"]) == (None, "Running")


def test_each_batch_is_in_the_pages_once(past: Past, around: Surroundings) -> None:
    past.commit(BATCHES)
    with past.status() as status:
        back = past.walk(status, "stages/load/batches")
        assert back == past.walk(status, "stages/load/batches", after="0")
        assert [each["batch"] for each in back] == [*range(BATCHES)]
        assert {each["sinks"][0]["committed_at"] for each in back} == {"1970-01-01T00:00:01.500Z"}
        assert status.get(f"{past.path}/stages/none/batches").status_code == 404

        create_anew(around, "commits")
        past.commit(3)
        gone = status.get(f"{past.path}/stages/load/batches", params={"after": back[3]["id"]})
        assert gone.json()["gap"] == "topic_recreated"
        assert [each["batch"] for each in gone.json()["items"]] == [0, 1, 2]
