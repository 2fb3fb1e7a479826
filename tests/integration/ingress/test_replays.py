"""Dead letters that are sent again, on a broker: as they were, each once, whoever is killed."""

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
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource

from contracts.replays import ReplayLogContract
from integration.conftest import Serving, Surroundings, serving
from integration.ingress.letters import PARTITIONS, Grave, create
from integration.ingress.test_records import opened
from integration.waiting import eventually
from waybill_ingress.adapters.kafka.replays import KafkaReplays
from waybill_shared.contract.dead_letters import REPLAY_OF, LetterId
from waybill_shared.kafka.admin import KafkaAdmin, make_admin
from waybill_shared.kafka.clients import position_of, read_to_end
from waybill_shared.process.failpoints import FOLDER, REACHED

T = TypeVar("T")
WAIT_S = 120.0
OWN = (("a", b"1"), ("b", None), ("a", b""), ("a", b"1"))


@pytest.fixture(scope="module")
def admin(surroundings: Surroundings) -> KafkaAdmin:
    return make_admin(surroundings.kafka)


class Logs:
    def __init__(self, around: Surroundings, admin: KafkaAdmin) -> None:
        self._kafka = around.kafka
        self.topic = f"{around.prefix}.{uuid.uuid4().hex[:8]}"
        create(admin, self.topic)
        self.topic_id = admin.identify([self.topic])[self.topic].topic_id
        self.uids = (str(uuid.uuid4()), str(uuid.uuid4()))
        self.log = KafkaReplays(admin, around.prefix)
        self.other_log = KafkaReplays(admin, around.prefix)

    def run(self, work: Callable[[], Awaitable[T]]) -> T:
        async def run() -> T:
            return await work()

        return asyncio.run(run())

    def standing(self) -> list[tuple[int, int, bytes | None]]:
        messages = read_to_end(self._kafka, self.topic, range(PARTITIONS))
        return [(*position_of(message), message.value()) for message in messages]


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


def test_records_stand_there_again_byte_for_byte_and_the_token_is_for_them(
    surroundings: Surroundings, grave: Grave, ingress: Process
) -> None:
    keys, values = (None, b"", b"\x00\xff"), (None, b"", b"\xff{")
    cases = [(key, value, own) for key in keys for value in values for own in ((), OWN)]
    places = [
        grave.bury(number, key=key, value=value, own=own, partition=number % PARTITIONS)
        for number, (key, value, own) in enumerate(cases)
    ]
    done = ingress.done(grave, *places)
    assert (done["replayed"], done["already"]) == (len(cases), 0)
    standing = sorted(grave.standing(), key=lambda each: (each.offset, each.partition))
    ids = [str(place).encode() for place in places]
    assert [(each.key, each.value, each.headers) for each in standing] == [
        (key, value, (*own, (REPLAY_OF, letter)))
        for (key, value, own), letter in zip(cases, ids, strict=True)
    ]
    covered = {
        (span.partition, offset)
        for part in opened(surroundings, done["token"]).parts
        for span in part.spans
        for offset in range(span.start, span.end)
    }
    assert covered == {(each.partition, each.offset) for each in standing}


def test_the_same_again_is_the_same_token_also_of_another_process(
    grave: Grave, two: tuple[Process, Process]
) -> None:
    one, other = grave.bury(1), grave.bury(2)
    first, second = two
    token = first.done(grave, one, other)["token"]
    for process in (first, second):
        same = process.done(grave, other, one)
        assert (same["token"], same["replayed"], same["already"]) == (token, 0, 2)
    assert len(grave.standing()) == 2
    again = second.done(grave, one, again=True)
    assert (again["token"] != token, again["replayed"]) == (True, 1)
    assert len(grave.standing()) == 3


def test_killed_inside_its_transaction_nothing_was_sent_and_the_next_one_sends_it(
    grave: Grave, doomed: Process, ingress: Process
) -> None:
    """The next one ends what the killed one left open, and does not wait until its time is over."""
    place = grave.bury(1)
    doomed.killed_at("before_commit", grave, place)
    done = ingress.done(grave, place)
    assert (done["replayed"], len(grave.standing())) == (1, 1)


def test_killed_between_the_transaction_and_the_answer_it_was_sent_once(
    surroundings: Surroundings, grave: Grave, doomed: Process, ingress: Process
) -> None:
    place = grave.bury(1)
    doomed.killed_at("after_commit", grave, place)
    done = ingress.done(grave, place)
    assert (done["replayed"], done["already"]) == (0, 1)
    (standing,) = grave.standing()
    (part,) = opened(surroundings, done["token"]).parts
    (span,) = part.spans
    assert (span.start, span.end) == (standing.offset, standing.offset + 1)


def test_many_at_the_same_time_send_it_once(grave: Grave, two: tuple[Process, Process]) -> None:
    """In two processes: who is shut out is told to try again."""
    place = grave.bury(1)
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
    assert len(grave.standing()) == 1


def test_record_that_the_topic_never_takes_is_refused_and_none_was_sent(
    admin: KafkaAdmin, grave: Grave, ingress: Process
) -> None:
    """Its limit is lower by now than it was."""
    good, bad = grave.bury(1), grave.bury(2, value=b"x" * 2_000)
    resource = ConfigResource(ConfigResource.Type.TOPIC, grave.topic)
    change = ConfigEntry("max.message.bytes", "1000", incremental_operation=AlterConfigOpType.SET)
    resource.add_incremental_config(change)
    admin.client.incremental_alter_configs([resource])[resource].result()
    answer = ingress.replay(grave, good, bad)
    assert answer.json()["type"] == "urn:waybill:problem:records_refused_by_kafka"
    assert grave.standing() == []
    assert ingress.done(grave, good)["replayed"] == 1


def test_input_that_was_created_anew_refuses_its_dead(
    admin: KafkaAdmin, grave: Grave, ingress: Process
) -> None:
    place = grave.bury(1)
    admin.client.delete_topics([grave.topic])[grave.topic].result()
    eventually(lambda: not admin.identify([grave.topic]), within_s=WAIT_S)
    create(admin, grave.topic)
    answer = ingress.replay(grave, place)
    assert (answer.status_code, answer.json()["title"]) == (409, "source recreated")
    assert grave.standing() == []
