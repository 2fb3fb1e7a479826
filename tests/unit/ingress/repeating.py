"""The log of claims and answers in memory, for several processes that see it with delay."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import count

from unit.ingress.fakes import FakeKafka
from waybill_ingress.app.idempotency_ports import Aborted, NotDone
from waybill_ingress.app.ports import Log
from waybill_ingress.core.requests import OwnedKey, Place, Requests
from waybill_shared.contract.requests import RequestAnswer, RequestClaim

DAY_MS = 86_400_000
Action = Callable[[Log], Awaitable[RequestAnswer]]


@dataclass
class World:
    """What stands in Kafka, for good, and who is shut out."""

    seed: int = 0
    now_ms: int = 10 * DAY_MS
    claims: list[RequestClaim] = field(default_factory=list)
    answers: list[RequestAnswer] = field(default_factory=list)
    records: list[tuple[str, bytes]] = field(default_factory=list)
    fenced: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.dice = random.Random(self.seed)
        self.ids = count(1)

    def process(self, *, keys_max: int = 1_000, kept_ms: int = DAY_MS) -> "Process":
        return Process(self, Requests(keys_max=keys_max, kept_ms=kept_ms))


class Process:
    """An ingress, which may be killed. Fulfils `RequestLog` and `Transactions`."""

    def __init__(self, world: World, requests: Requests) -> None:
        self.world = world
        self.killed = False
        self.slow = False
        self.sees = 0.5
        """How often it has read all that there is."""
        self._requests = requests
        self._claims_read = self._answers_read = 0
        self._open: Transaction | None = None

    async def pause(self) -> None:
        """Others go first; who is killed goes on no more."""
        for _ in range(self.world.dice.randrange(30 if self.slow else 4)):
            await asyncio.sleep(0)
        if self.killed:
            await asyncio.Event().wait()

    def now_ms(self) -> int:
        return self.world.now_ms

    def nonce(self) -> str:
        return f"{next(self.world.ids):032x}"

    def owner(self, who: str) -> OwnedKey | None:
        self._see(self.world.dice.random() < self.sees)
        return self._requests.owner(who, self.world.now_ms)

    async def await_owner(self, who: str, before: OwnedKey) -> OwnedKey | None:
        await self.pause()
        self._see(self.sees == 0.0 or self.world.dice.random() < self.sees)
        return self._requests.owner(who, self.world.now_ms)

    def forgets_before(self) -> int:
        return self._requests.forgets_before(self.world.now_ms)

    async def claim(self, claim: RequestClaim) -> OwnedKey | None:
        await self.pause()
        self.world.claims.append(claim)
        at = len(self.world.claims)
        await self.pause()
        self._see_claims(at)
        return self._requests.owner(claim.who, self.world.now_ms)

    async def settle(self, owned: OwnedKey) -> None:
        await self.pause()
        self.world.fenced.add(owned.transactional_id)
        await self.pause()
        self._see(True)

    async def answer(self, owned: OwnedKey) -> RequestAnswer:
        await self.pause()
        assert owned.place is not None
        return self.world.answers[owned.place[1]]

    def note(self, answer: RequestAnswer, place: Place) -> None:
        self._requests.note_answer(answer, place)

    async def next(self, *, apart: bool = False) -> "Transaction":
        await self.pause()
        if self._open is None or self._open.over:
            self._open = Transaction(self, f"transaction-{next(self.world.ids)}")
        return self._open

    def _see(self, all_of_it: bool) -> None:
        if all_of_it:
            self._see_claims(len(self.world.claims))
            for at in range(self._answers_read, len(self.world.answers)):
                self._requests.note_answer(self.world.answers[at], (0, at))
            self._answers_read = len(self.world.answers)

    def _see_claims(self, end: int) -> None:
        for claim in self.world.claims[self._claims_read : end]:
            self._requests.take(claim, self.world.now_ms)
        self._claims_read = max(self._claims_read, end)


class Transaction:
    def __init__(self, process: Process, id: str) -> None:
        self.id = id
        self.over = False
        self._process = process

    async def carry_out(self, action: Action) -> tuple[RequestAnswer, Place]:
        process, world = self._process, self._process.world
        log = FakeKafka(pause=process.pause)
        if self.over:
            raise Aborted("over")
        try:
            answer = await action(log)
        except Exception:
            self.over = self.over or bool(log.written)
            raise
        await process.pause()
        fate = world.dice.random()
        if self.over or self.id in world.fenced or fate < 0.1:
            self.over = True
            raise Aborted("shut out")
        if fate < 0.2:
            self.over = True
            raise NotDone("nobody knows, and it was not")
        values = (record.value for record in log.written)
        world.records += zip(log.topics, values, strict=True)
        world.answers.append(answer)
        place = 0, len(world.answers) - 1
        if fate < 0.3:
            self.over = True
            raise NotDone("nobody knows, and it was")
        await process.pause()
        return answer, place
