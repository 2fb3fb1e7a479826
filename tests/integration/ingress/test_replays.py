"""Dead letters that are replayed, on a broker: each has one message, whoever is killed."""

import asyncio
import os
import signal
import threading
import uuid
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import httpx2
import pytest

from contracts.replays import ReplayLogContract
from integration.conftest import Serving, Surroundings, serving
from integration.ingress.letters import PARTITIONS, Grave, create, written
from integration.ingress.test_records import opened
from integration.waiting import eventually
from waybill_ingress.adapters.kafka.replays import KafkaReplays
from waybill_shared.contract import dead_letters as named
from waybill_shared.contract.dead_letters import LetterId
from waybill_shared.contract.replays import LetterReplay, ReplayPosition
from waybill_shared.kafka.admin import KafkaAdmin, make_admin
from waybill_shared.process.failpoints import FOLDER, REACHED

T = TypeVar("T")
WAIT_S = 120.0


@pytest.fixture(scope="module")
def admin(surroundings: Surroundings) -> KafkaAdmin:
    return make_admin(surroundings.kafka)


class Logs:
    def __init__(self, around: Surroundings, admin: KafkaAdmin) -> None:
        self._around = around
        self._admin = admin
        self.uids = (str(uuid.uuid4()), str(uuid.uuid4()))
        self.log = KafkaReplays(admin, around.prefix)
        self.other_log = KafkaReplays(admin, around.prefix)

    def run(self, work: Callable[[], Awaitable[T]]) -> T:
        async def run() -> T:
            return await work()

        return asyncio.run(run())

    def written(self) -> list[tuple[ReplayPosition, LetterReplay]]:
        return [*written(self._around, self._admin, *self.uids)]


class TestKafkaReplays(ReplayLogContract):
    @pytest.fixture
    def bench(self, surroundings: Surroundings, admin: KafkaAdmin) -> Logs:
        return Logs(surroundings, admin)


class Process:
    """An ingress that may be killed at a point."""

    def __init__(self, started: Serving, points: Path) -> None:
        self._started = started
        self._points = points
        self.http = httpx2.Client(base_url=started.url, timeout=WAIT_S)

    def replay(self, grave: Grave, *places: LetterId, again: bool = False) -> "httpx2.Response":
        body = {"ids": [str(place) for place in places], "again": again}
        path = f"/v1/pipelines/{grave.record.name}/dead-letters/replay"
        return self.http.post(path, json=body)

    def done(self, grave: Grave, *places: LetterId, again: bool = False) -> dict[str, Any]:
        """As soon as it knows the pipeline."""
        answer = self.replay(grave, *places, again=again)
        assert answer.status_code == httpx2.codes.OK, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def killed_at(self, point: str, grave: Grave, *places: LetterId) -> None:
        name = f"{grave.record.pipeline_uid}.replay.{point}"
        (self._points / name).touch()

        def ask() -> None:
            with pytest.raises(httpx2.TransportError):
                self.replay(grave, *places)

        asking = threading.Thread(target=ask)
        asking.start()
        eventually((self._points / f"{name}{REACHED}").exists, within_s=WAIT_S)
        os.kill(self._started.pid, signal.SIGKILL)
        asking.join()


@contextmanager
def an_ingress(around: Surroundings, folder: Path) -> Iterator[Process]:
    log = folder / f"ingress-{uuid.uuid4().hex[:6]}.log"
    environment = {**around.environment, FOLDER: str(folder)}
    with serving("ingress", environment, log, killed=True) as started:
        yield Process(started, folder)


@pytest.fixture(scope="module")
def two(
    surroundings: Surroundings, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Process, Process]]:
    folder = tmp_path_factory.mktemp("ingress")
    with an_ingress(surroundings, folder) as one, an_ingress(surroundings, folder) as other:
        yield one, other


@pytest.fixture
def ingress(two: tuple[Process, Process]) -> Process:
    return two[0]


@pytest.fixture
def doomed(surroundings: Surroundings, tmp_path: Path) -> Iterator[Process]:
    """Of this test alone."""
    with an_ingress(surroundings, tmp_path) as process:
        yield process


@pytest.fixture
def grave(surroundings: Surroundings, admin: KafkaAdmin) -> Grave:
    grave = Grave(surroundings, admin)
    grave.tell()
    return grave


def bury(grave: Grave, number: int, **more: str) -> LetterId:
    told = {getattr(named, name.upper()): text for name, text in more.items()}
    return grave.bury(number, key=b"%d" % number, partition=number % PARTITIONS, more=told)


def test_each_letter_has_a_message_and_the_token_is_for_these(
    surroundings: Surroundings, grave: Grave, ingress: Process
) -> None:
    places = [bury(grave, number) for number in range(5)]
    only = bury(grave, 5, sink="enrich/lake@1")
    done = ingress.done(grave, *places, only)
    assert (done["replayed"], done["already"], done["sinks"]) == (6, 0, ["enrich/lake"])
    asked = grave.asked()
    assert {each.letter for _, each in asked} == {*places, only}
    assert {(each.stage, each.sinks) for _, each in asked} == {("enrich@1", ("enrich/lake@1",))}
    assert {each.topic_id for _, each in asked} == {grave.topic_id}
    covered = {
        (span.topic_id, span.partition, offset)
        for part in opened(surroundings, done["token"]).parts
        for span in part.spans
        for offset in range(span.start, span.end)
    }
    assert covered == {(at.topic_id, at.partition, at.offset) for at, _ in asked}
    assert grave.standing() == [], "nothing is written to the input"


def test_the_same_again_is_the_same_token_also_of_another_process(
    grave: Grave, two: tuple[Process, Process]
) -> None:
    one, other = bury(grave, 1), bury(grave, 2)
    first, second = two
    token = first.done(grave, one, other)["token"]
    for process in (first, second):
        same = process.done(grave, other, one)
        assert (same["token"], same["replayed"], same["already"]) == (token, 0, 2)
    assert len(grave.asked()) == 2
    again = second.done(grave, one, again=True)
    assert (again["token"] != token, again["replayed"]) == (True, 1)
    assert len(grave.asked()) == 3


def test_killed_inside_its_transaction_nothing_is_replayed_and_the_next_one_does_it(
    grave: Grave, doomed: Process, ingress: Process
) -> None:
    """The next one ends what the killed one left open, and does not wait until its time is over."""
    place = bury(grave, 1)
    doomed.killed_at("before_commit", grave, place)
    done = ingress.done(grave, place)
    assert (done["replayed"], len(grave.asked())) == (1, 1)


def test_killed_between_the_transaction_and_the_answer_it_is_replayed_once(
    surroundings: Surroundings, grave: Grave, doomed: Process, ingress: Process
) -> None:
    place = bury(grave, 1)
    doomed.killed_at("after_commit", grave, place)
    done = ingress.done(grave, place)
    assert (done["replayed"], done["already"]) == (0, 1)
    ((position, _),) = grave.asked()
    (part,) = opened(surroundings, done["token"]).parts
    (span,) = part.spans
    assert (span.start, span.end) == (position.offset, position.offset + 1)


def test_many_at_the_same_time_do_it_once(grave: Grave, two: tuple[Process, Process]) -> None:
    """In two processes: who is shut out is told to try again."""
    place = bury(grave, 1)
    tokens: set[str] = set()

    def ask(number: int) -> None:
        def answered() -> bool:
            answer = two[number % 2].replay(grave, place)
            if answer.status_code == httpx2.codes.SERVICE_UNAVAILABLE:
                assert answer.headers["retry-after"]
                return False
            tokens.add(answer.raise_for_status().json()["token"])
            return True

        eventually(answered, within_s=WAIT_S)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, range(8)))
    assert len(tokens) == 1
    assert len(grave.asked()) == 1


def test_a_topic_that_was_created_anew_is_no_matter(
    admin: KafkaAdmin, grave: Grave, ingress: Process
) -> None:
    """The record is in its dead-letter topic."""
    place = bury(grave, 1)
    admin.client.delete_topics([grave.topic])[grave.topic].result()
    eventually(lambda: not admin.identify([grave.topic]), within_s=WAIT_S)
    create(admin, grave.topic)
    assert ingress.done(grave, place)["replayed"] == 1
