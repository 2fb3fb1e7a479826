"""What stands around Redis in these tests: facts as a runner writes them, a real tracker that keeps
slots of them, a real status that answers from the slots, and somebody who asks all the time."""

import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Self

import httpx2

from builders import (
    ENRICHED_ID,
    ORDERS_ID,
    make_commit,
    make_definition,
    make_fact,
    make_input,
    make_record,
    make_sink,
    make_stage,
)
from integration.conftest import Serving, Surroundings
from integration.switches import Switch
from integration.waiting import eventually
from waybill_shared.access.authentication import DEFAULT_TENANT
from waybill_shared.contract.codec import encode
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.events import Commit, Definition, pipeline_key
from waybill_shared.contract.tokens import Part, Token, pipeline_id, seal
from waybill_shared.contract.vectors import Span
from waybill_shared.kafka.clients import make_producer, produce_and_wait
from waybill_shared.process.clock import SystemClock

SNAPSHOT = 6150272777574668285
PAUSE_S = 0.02  # of who asks all the time: without any, nobody else gets the cores
STAGES = (
    make_stage("enrich", sinks=(make_sink("enriched", topic_id=ENRICHED_ID, terminal=False),)),
    make_stage("load", inputs=(make_input("enriched", topic_id=ENRICHED_ID, root=False),)),
)


@dataclass(frozen=True, slots=True)
class Answer:
    """What status said of a token; `body` is without what names the request."""

    status: int
    outcome: str
    retry_after: str | None
    body: dict[str, object]


@dataclass(frozen=True, kw_only=True)
class World:
    """Tracker and status reach Redis by a switch of their own."""

    surroundings: Surroundings
    tracker: Serving
    status: httpx2.Client
    tracker_way: Switch
    status_way: Switch

    def point_to(self, port: int | None) -> None:
        self.tracker_way.point_to(port)
        self.status_way.point_to(port)

    def ask(self, token: str) -> Answer:
        response = self.status.get(f"/v1/tokens/{token}")
        body = {name: value for name, value in response.json().items() if name != "request_id"}
        retry_after = response.headers.get("Retry-After")
        return Answer(response.status_code, str(body["outcome"]), retry_after, body)

    def await_outcome(self, token: str, outcome: str) -> Answer:
        eventually(lambda: self.ask(token).outcome == outcome)
        return self.ask(token)

    def pipeline(self) -> "Pipeline":
        """A new one with two stages, that both status and the tracker know."""
        made = Pipeline(world=self, uid=str(uuid.uuid4()))
        record = make_record(f"orders-{made.uid[:8]}", uid=made.uid, stages=STAGES)
        made.produce("pipelines", encode(record))
        made.tell(make_definition(*STAGES))
        self.await_outcome(made.token(0, 1), "in_progress")
        return made


@dataclass(kw_only=True)
class Pipeline:
    world: World
    uid: str
    done: int = field(default=0)

    def token(self, start: int, end: int) -> str:
        around = self.world.surroundings
        span = Span(topic_id=ORDERS_ID, partition=0, start=start, end=end)
        owner = pipeline_id(DEFAULT_TENANT, self.uid)
        part = Part(pipeline_id=owner, generation=1, spans=(span,))
        token = Token(issued_at=SystemClock().now_ms(), request_id="00" * 8, parts=(part,))
        nonce = uuid.uuid4().bytes[:12]
        return seal(token, around.ring, tenant=DEFAULT_TENANT, nonce=nonce)

    def process(self, count: int = 1) -> None:
        """One record per batch, through both stages."""
        for _ in range(count):
            self.done += 1
            at, sequence = self.done, self.done - 1
            written = {(ENRICHED_ID, 0): at}
            enriched = make_commit(
                {(ORDERS_ID, 0): at}, sink="enriched", outputs=written, sequence=sequence
            )
            self.tell(enriched)
            version = SNAPSHOT + sequence
            self.tell(make_commit(written, stage="load", sequence=sequence, version=version))

    def complete_token(self) -> tuple[str, Answer]:
        """A token of the next record, processed."""
        token = self.token(self.done, self.done + 1)
        self.process()
        return token, self.world.await_outcome(token, "complete")

    def tell(self, body: Commit | Definition) -> None:
        self.produce("commits", encode(make_fact(body, uid=self.uid)))

    def produce(self, topic: str, value: bytes) -> None:
        """A fact may stand there twice. Who found no broker in time may find none again."""
        around = self.world.surroundings
        key = pipeline_key(DEFAULT_TENANT, self.uid)

        def acknowledged() -> bool:
            try:
                producer = make_producer(around.kafka)
                produce_and_wait(producer, f"{around.prefix}.{topic}", key, value)
            except Retryable:
                return False
            return True

        eventually(acknowledged)


class Asker:
    """Asks for tokens all the time, and keeps what it hears of each."""

    def __init__(self, world: World, *tokens: str) -> None:
        self.heard: dict[str, list[Answer]] = {token: [] for token in tokens}
        self.failures: list[BaseException] = []
        self._world = world
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        self._thread.join()

    def outcomes(self, token: str) -> set[str]:
        return {answer.outcome for answer in self.heard[token]}

    def hears(self, token: str, outcome: str) -> None:
        """Returns when an answer that was asked for from now on is this one."""
        before = len(self.heard[token]) + 1
        eventually(
            lambda: (
                self.failures
                or any(answer.outcome == outcome for answer in self.heard[token][before:])
            )
        )

    def assert_never_a_lie(self) -> None:
        """What was complete once is the same complete or unknown ever after, and whoever cannot
        know says so with a time to ask again."""
        assert not self.failures, self.failures
        for answers in self.heard.values():
            first = next((a for a in answers if a.outcome == "complete"), None)
            since = answers[answers.index(first) :] if first is not None else []
            for answer in since:
                assert answer.outcome == "unknown" or answer == first, f"{first}, then {answer}"
            for answer in answers:
                asked_again = answer.status == 503 and answer.retry_after is not None
                assert asked_again == (answer.outcome == "unknown"), answer

    def _run(self) -> None:
        try:
            while not self._stop.wait(PAUSE_S):
                for token, answers in self.heard.items():
                    answers.append(self._world.ask(token))
        except BaseException as error:  # noqa: BLE001 - told by the test
            self.failures.append(error)


@contextmanager
def asked(world: World, *tokens: str) -> Iterator[Asker]:
    """Asks for the tokens meanwhile; at the end nothing of what it heard may be a lie."""
    with Asker(world, *tokens) as asker:
        yield asker
    asker.assert_never_a_lie()
