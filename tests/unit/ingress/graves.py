"""Dead-letter topics and the log of replays, in memory."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from builders import make_sink
from message_builders import make_letter_headers
from unit.ingress.fakes import OLD_ID, pipeline, source
from waybill_ingress.core.dead_letters import (
    ExpiredDeadLetter,
    Found,
    FoundDeadLetter,
    too_many,
)
from waybill_shared.contract import dead_letters as named
from waybill_shared.contract.dead_letters import Headers, LetterId
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.events import PipelineRecord, StageDefinition
from waybill_shared.contract.replays import LetterReplay, Replay, ReplayPosition

REPLAYS_ID = "cmVwbGF5cy5yZXBsYXlzLg"
DLQ_ID = "ZGVhZC5kZWFkLmRlYWQuZA"
OWN: Headers = (("trace", b"1"), ("trace", b"2"), ("empty", b""), ("null", None))


def burying_pipeline() -> PipelineRecord:
    """One with a stage of two sinks, so that something lacks what died."""
    sinks = (make_sink("lake"), make_sink("copy"))
    stage = StageDefinition(name="copy", since=1, inputs=(source(),), sinks=sinks)
    return replace(pipeline(source()), stages=(stage,))


def place(offset: int, at: int | None = None, *, topic: str = "orders.in.dlq") -> LetterId:
    """Of the letter at `at` of the record at `offset`."""
    return LetterId(
        topic=topic, partition=0, offset=offset + 100 if at is None else at, source=offset
    )


@dataclass
class FakeLetters:
    """`DeadLetterLookup` over one dead-letter topic."""

    there: dict[LetterId, FoundDeadLetter | ExpiredDeadLetter] = field(default_factory=dict)
    bytes_each: int = 0

    def bury(self, offset: int, at: int | None = None, **changes: str | None) -> str:
        """The id of the letter; `changes` are by the last word of the name of a header."""
        where = place(offset, at)
        facts = {
            named.OFFSET: str(offset),
            named.PIPELINE: "orders",
            named.UID: "uid-1",
            named.TOPIC_ID: OLD_ID,
            named.STAGE: "copy",
            **{getattr(named, name.upper()): text for name, text in changes.items()},
        }
        headers = make_letter_headers(facts, own=OWN)
        value = b'{"id": %d}' % offset
        self.there[where] = FoundDeadLetter(
            key=b"\x00k", value=value, headers=headers, topic_id=DLQ_ID
        )
        return str(where)

    async def read(self, places: Sequence[LetterId], *, bytes_max: int) -> Found:
        assert len(set(places)) == len(places)
        if len(places) * self.bytes_each > bytes_max:
            raise too_many("their records are too large")
        return {each: self.there[each] for each in places if each in self.there}


class Killed(BaseException):
    """The process ends here."""


@dataclass
class FakeReplayLog:
    """`ReplayLog` in memory: what is concluded counts, all at once.

    `at`: what happens at a point, by its name: "send", "conclude", "concluded".
    """

    end: int = 50
    written: list[tuple[ReplayPosition, LetterReplay]] = field(default_factory=list)
    answers: list[Replay] = field(default_factory=list)
    at: dict[str, BaseException] = field(default_factory=dict)
    transactions: dict[str, int] = field(default_factory=dict)

    @asynccontextmanager
    async def transaction(self, tenant: str, pipeline_uid: str) -> AsyncIterator["FakeTransaction"]:
        number = self.transactions[pipeline_uid] = self.transactions.get(pipeline_uid, 0) + 1
        yield FakeTransaction(self, pipeline_uid, number)

    def reach(self, point: str) -> None:
        if point in self.at:
            raise self.at.pop(point)


class FakeTransaction:
    def __init__(self, log: FakeReplayLog, uid: str, number: int) -> None:
        self._log = log
        self._uid = uid
        self._number = number
        self._open: list[tuple[ReplayPosition, LetterReplay]] = []

    async def read(self) -> Sequence[Replay]:
        self._require()
        return [each for each in self._log.answers if each.pipeline_uid == self._uid]

    async def send(self, letters: Sequence[LetterReplay]) -> Sequence[ReplayPosition]:
        await asyncio.sleep(0)  # others go first here
        self._require()
        self._log.reach("send")
        for each in letters:
            position = ReplayPosition(topic_id=REPLAYS_ID, partition=3, offset=self._log.end)
            self._log.end += 1
            self._open.append((position, each))
        return [position for position, _ in self._open]

    async def conclude(self, answer: Replay) -> None:
        self._require()
        self._log.reach("conclude")
        self._log.written += self._open
        self._log.answers.append(answer)
        self._log.end += 2  # the answer and a marker
        self._log.reach("concluded")

    def _require(self) -> None:
        if self._number != self._log.transactions[self._uid]:
            raise Retryable("another one has begun")
