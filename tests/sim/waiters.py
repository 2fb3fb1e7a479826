"""Clients that wait: each is told what becomes of its token by the real `Hub` and `Feeds`.

They follow a token's changes, ask again and again for an answer that may come late, or watch it.
The process that answers is one of several; when it ends, its clients go to another one.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from random import Random
from typing import Final, Protocol, cast

from sim.checker import Checker
from sim.clients import RING, Follower, Issued, Status, outcome_text
from sim.clocks import Clocks
from sim.loop import TurningLoop
from sim.redis_server import RedisServer, Slots
from sim.watching import Watches
from waybill_shared.contract.errors import TokenRefused
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.slots import Progress
from waybill_shared.contract.tokens import Token
from waybill_status.app.outcomes.hub import Hub
from waybill_status.app.outcomes.question import Change
from waybill_status.app.outcomes.tokens import Tokens
from waybill_status.core.outcomes.outcome import Outcome
from waybill_status.core.outcomes.views import PipelineKey, SlotReading, SlotStamp

WAITERS_MAX: Final = 1_000
WAIT_S: Final = 10.0
WATCHES: Final = 0.3  # of those who want to know
PAUSE_S: Final = 1.0  # of a client whose answer was not final
TURNS_MAX: Final = 10_000


class Around(Protocol):
    dice: Random
    redis: RedisServer
    checker: Checker

    @property
    def clocks(self) -> Clocks: ...

    @property
    def records(self) -> Sequence[PipelineRecord]: ...

    status: Status

    def open(self, issued: Issued) -> Token: ...

    def say(self, text: str) -> None: ...


@dataclass(slots=True, eq=False)
class Waiter:
    issued: Issued
    follows: bool
    told: Outcome | None = None


class SlowSlots(Slots):
    """Others do something before an answer is made, or while it is on its way."""

    def __init__(self, server: RedisServer, dice: Random) -> None:
        super().__init__(server)
        self._dice = dice

    async def read(self, pipelines: Iterable[PipelineKey]) -> dict[PipelineKey, SlotReading]:
        await self._lag()
        found = await super().read(pipelines)
        await self._lag()
        return found

    async def stamps(self, pipelines: Iterable[PipelineKey]) -> dict[PipelineKey, SlotStamp]:
        await self._lag()
        return await super().stamps(pipelines)

    async def newest(self, pipeline: PipelineKey, sink: str, count: int) -> list[Progress]:
        await self._lag()
        return await super().newest(pipeline, sink, count)

    async def _lag(self) -> None:
        for _ in range(self._dice.randrange(3)):
            await asyncio.sleep(0)


class Waiters:
    """All clients that wait, and the process of status that they wait at."""

    def __init__(self, world: Around, directory: Follower) -> None:
        self._world = world
        self._directory = directory
        self._waiting: dict[Waiter, asyncio.Task[None]] = {}
        self._loop = TurningLoop(  # type: ignore[abstract]
            lambda: world.clocks.status.monotonic_ms() / 1000
        )
        self._watches = Watches(world, self._loop)
        self._tokens = self._begin()

    def wait(self, issued: Issued) -> None:
        if self._world.dice.random() < WATCHES:
            self._watches.watch(issued)
        elif len(self._waiting) < WAITERS_MAX:
            waiter = Waiter(issued, follows=self._world.dice.random() < 0.5)
            self._waiting[waiter] = self._loop.create_task(self._live(waiter))

    def ask(self) -> None:
        """For what is watched."""
        self._watches.ask(self._world.status.ask)

    def leave(self) -> None:
        """Somebody gives up; whoever shares its question waits on."""
        if self._waiting:
            waiter = [*self._waiting][self._world.dice.randrange(len(self._waiting))]
            self._waiting.pop(waiter).cancel()

    def turn(self, count: int) -> None:
        for _ in range(count):
            if not self._loop.turn():
                break
        for fault in self._loop.faults:
            self._world.checker.report("I2", f"status fails: {fault}")
        self._loop.faults.clear()

    def turn_all(self) -> None:
        self.turn(TURNS_MAX)

    def replace(self) -> None:
        """Another process answers; whoever waited for the one that is gone waits there."""
        self._world.say("status is gone")
        self._loop.cancel_all()
        self._tokens = self._begin()
        for waiter in self._waiting:
            self._waiting[waiter] = self._loop.create_task(self._live(waiter))

    def hear(self) -> None:
        """More is known of the pipelines."""
        self._tokens.directory_changed.notify()

    def end(self) -> None:
        """I2: whoever waited was told the end of its token."""
        for waiter in self._waiting:
            told = outcome_text(waiter.told) if waiter.told is not None else "nothing"
            detail = f"who waits for a token ({waiter.issued.places or 'all'}) was told {told}"
            self._world.checker.report("I2", detail)
        self._watches.end(self._world.status.ask)

    def close(self) -> None:
        self._loop.cancel_all()

    def _begin(self) -> Tokens:
        world = self._world
        store = SlowSlots(world.redis, world.dice)
        hub = Hub(store, waiters_max=WAITERS_MAX)
        self._loop.create_task(hub.run())
        tokens = Tokens(
            self._directory,
            self._directory,
            store=store,
            hub=hub,
            ring=RING,
            clock=world.clocks.status,
        )
        self._watches.begin(tokens, hub)
        return tokens

    async def _live(self, waiter: Waiter) -> None:
        token = self._world.open(waiter.issued)
        while waiter.told is None or not waiter.told.final:
            try:
                await (self._follow if waiter.follows else self._poll)(waiter, token)
            except TokenRefused as refused:
                self._tell(waiter, refused)
            if waiter.told is None or not waiter.told.final:
                await asyncio.sleep(PAUSE_S)
        del self._waiting[waiter]

    async def _follow(self, waiter: Waiter, token: Token) -> None:
        changes = cast(AsyncGenerator[Change | None, None], self._tokens.follow(token))
        async with aclosing(changes):
            async for change in changes:
                if change is not None:
                    self._tell(waiter, change.outcome)

    async def _poll(self, waiter: Waiter, token: Token) -> None:
        """By itself, or with others in one request."""
        if self._world.dice.random() < 0.5:
            self._tell(waiter, await self._tokens.wait(token, WAIT_S))
        else:
            (outcome,) = await self._tokens.wait_for_all([token], WAIT_S)
            self._tell(waiter, outcome)

    def _tell(self, waiter: Waiter, outcome: Outcome | TokenRefused) -> None:
        before, waiter.told = waiter.told, outcome if isinstance(outcome, Outcome) else None
        if before is None or outcome_text(before) != outcome_text(outcome):
            self._world.say(
                f"who waits for {waiter.issued.places or 'all'}: {outcome_text(outcome)}"
            )
        if before is not None and before.final:
            self._world.checker.report("I3", f"who waits is told {outcome} behind the end")
        self._world.checker.told(waiter.issued, self._world.open(waiter.issued), outcome)
