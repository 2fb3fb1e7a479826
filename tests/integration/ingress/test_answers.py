"""What becomes of commands, as each ingress hears it from Kafka."""

import asyncio
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import httpx2
import pytest
from fastapi import FastAPI

from builders import make_record
from integration.conftest import StartService, Surroundings
from integration.waiting import eventually
from message_builders import make_reply
from waybill_ingress.adapters.kafka.replies import FollowedAnswers
from waybill_shared.access.authentication import ANYONE
from waybill_shared.contract.codec import decode, encode
from waybill_shared.contract.events import Command, PipelineRecord
from waybill_shared.contract.operations import OperationId
from waybill_shared.contract.words import Action
from waybill_shared.kafka.clients import make_producer, produce_and_wait, read_to_end
from waybill_shared.kafka.follower import TopicFollower
from waybill_shared.process.clock import SystemClock

WAIT_S = 120.0
NAME = "orders"


class Runner:
    """Answers commands as a stage runner does, in the words that a test gives."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._producer = make_producer(around.kafka)

    def tell(self, record: PipelineRecord) -> None:
        self._produce("pipelines", encode(record))

    def answer(self, command: str, state: str = "done", problem: str | None = None) -> None:
        self._produce("replies", encode(make_reply(state, id=command, problem=problem)))

    def taken(self) -> set[str]:
        topic = f"{self._around.prefix}.commands"
        messages = read_to_end(self._around.kafka, topic, range(8))
        return {decode(Command, message.value() or b"").id for message in messages}

    def _produce(self, topic: str, value: bytes) -> None:
        produce_and_wait(self._producer, f"{self._around.prefix}.{topic}", "key", value)


@pytest.fixture(scope="module")
def runner(surroundings: Surroundings) -> Runner:
    return Runner(surroundings)


@pytest.fixture(scope="module")
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor() as pool:
        yield pool


@pytest.fixture(scope="module")
def several(runner: Runner, start_service: StartService, pool: ThreadPoolExecutor) -> list[str]:
    """The addresses of two processes of ingress, which know of one pipeline and hear answers."""
    runner.tell(make_record(NAME))
    found = [start_service("ingress"), start_service("ingress")]

    def hears(ingress: str) -> bool:
        command, answer = asked(pool, ingress, runner)
        runner.answer(command)
        return answer.result(WAIT_S).status_code == httpx2.codes.OK

    for ingress in found:
        eventually(lambda at=ingress: hears(at), within_s=WAIT_S)  # type: ignore[misc]
    return found


def stop(ingress: str, wait_s: float) -> httpx2.Response:
    path = f"{ingress}/v1/pipelines/{NAME}/stop"
    return httpx2.post(path, params={"wait": wait_s}, timeout=WAIT_S)


def asked(
    pool: ThreadPoolExecutor, ingress: str, runner: Runner
) -> "tuple[str, Future[httpx2.Response]]":
    """The id of a command that ingress has just taken, and what it will answer."""
    before = runner.taken()
    answer = pool.submit(stop, ingress, 10)
    eventually(lambda: runner.taken() - before, within_s=WAIT_S)
    (command,) = runner.taken() - before
    return command, answer


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize(
    ("state", "problem", "status"),
    [
        ("done", None, 200),
        ("failed", "superseded", 409),
        ("failed", "plan_incompatible", 422),
        ("failed", "command_given_up", 503),
    ],
)
def test_each_ingress_answers_with_what_became_of_the_command(
    several: list[str],
    runner: Runner,
    pool: ThreadPoolExecutor,
    number: int,
    state: str,
    problem: str | None,
    status: int,
) -> None:
    command, answer = asked(pool, several[number], runner)
    runner.answer(command, state, problem)

    told = answer.result(WAIT_S)

    assert (told.status_code, told.json()["id"], told.json()["state"]) == (status, command, state)
    assert told.json()["problem"] == problem


@pytest.mark.parametrize("wait_s", [0, 0.2])
def test_what_nobody_has_answered_in_time_was_taken(
    several: list[str], runner: Runner, wait_s: float
) -> None:
    answer = stop(several[0], wait_s)
    assert answer.status_code == 202
    assert answer.json()["operation"] in runner.taken()


class Standing(TopicFollower[PipelineRecord]):
    """Holds up whoever asks for its news: then nothing more is heard."""

    def __init__(self, around: Surroundings) -> None:
        super().__init__(around.kafka, f"{around.prefix}.pipelines", PipelineRecord, _nobody)
        self.let = threading.Event()

    def await_now(self, timeout_s: float) -> None:
        assert self.let.wait(WAIT_S)


def _nobody(record: PipelineRecord) -> None:
    """Nothing is read here."""


def test_an_ingress_that_lags_behind_does_not_let_anybody_wait(
    surroundings: Surroundings, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("waybill_shared.kafka.follower.LAG_INTERVAL_S", 0.1)
    monkeypatch.setattr("waybill_shared.kafka.follower.LAG_S_MAX", 0.3)
    pipelines = Standing(surroundings)
    answers = FollowedAnswers(
        surroundings.kafka,
        surroundings.prefix,
        pipelines,
        lambda reply: None,
        since_ms=SystemClock().now_ms(),
    )
    operation = OperationId(action=Action.STOP, pipeline=NAME, nonce=uuid.uuid4().hex)

    async def run() -> None:
        async with answers.run(FastAPI()):
            await asyncio.to_thread(eventually, lambda: answers.check() is None)
            await asyncio.to_thread(runner.answer, str(operation))
            await asyncio.to_thread(eventually, lambda: answers.check() is not None)
            async with asyncio.timeout(1):
                assert await answers.within(ANYONE, operation, 10) is None
            pipelines.let.set()
            await asyncio.to_thread(eventually, lambda: answers.check() is None)
            assert await answers.within(ANYONE, operation, 10) is not None

    asyncio.run(run())
