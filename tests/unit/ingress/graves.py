"""Dead-letter topics and the log of replays, in memory."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from message_builders import make_letter_headers
from unit.ingress.fakes import OLD_ID, FakeKafka
from waybill_ingress.core.dead_letters import (
    ExpiredDeadLetter,
    Found,
    FoundDeadLetter,
    Resent,
    too_many,
)
from waybill_shared.contract import dead_letters as named
from waybill_shared.contract.dead_letters import Headers, LetterId
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.replays import Replay

OWN: Headers = (("trace", b"1"), ("trace", b"2"), ("empty", b""), ("null", None))


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
            **{getattr(named, name.upper()): text for name, text in changes.items()},
        }
        headers = make_letter_headers(facts, own=OWN)
        value = b'{"id": %d}' % offset
        self.there[where] = FoundDeadLetter(key=b"\x00k", value=value, headers=headers)
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
    """`ReplayLog` over `kafka`: what is concluded counts, all at once.

    `at`: what happens at a point, by its name: "send", "conclude", "concluded".
    """

    kafka: FakeKafka
    standing: list[tuple[int, int, Resent]] = field(default_factory=list)
    answers: list[Replay] = field(default_factory=list)
    at: dict[str, BaseException] = field(default_factory=dict)
    transactions: dict[str, int] = field(default_factory=dict)

    @property
    def sent(self) -> list[Resent]:
        return [each for _, _, each in self.standing]

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
        self._open: list[tuple[int, int, Resent]] = []

    async def read(self) -> Sequence[Replay]:
        self._require()
        return [each for each in self._log.answers if each.pipeline_uid == self._uid]

    async def send(self, records: Sequence[Resent]) -> Sequence[tuple[int, int]]:
        await asyncio.sleep(0)  # others go first here
        self._require()
        self._log.reach("send")
        ends = self._log.kafka.ends_now
        for each in records:
            at = ends[each.partition]
            ends[each.partition] = at + 1
            self._open.append((each.partition, at, each))
        self._log.kafka.topic_id = self._log.kafka.becomes or self._log.kafka.topic_id
        return [(partition, at) for partition, at, _ in self._open]

    async def conclude(self, answer: Replay) -> None:
        self._require()
        self._log.reach("conclude")
        self._log.standing += self._open
        self._log.answers.append(answer)
        self._log.kafka.ends_now = {p: end + 1 for p, end in self._log.kafka.ends_now.items()}
        self._log.reach("concluded")

    def _require(self) -> None:
        if self._number != self._log.transactions[self._uid]:
            raise Retryable("another one has begun")
