"""All that answers for tokens, around a store in memory, while its hub runs."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from clocks import FixedClock
from unit.status.fakes import FakeOwners, FakeStore
from unit.status.slots import RING, TICK_S, record, slot
from waybill_shared.contract.tokens import Token
from waybill_shared.contract.words import OutcomeKind
from waybill_status.app.dead_letters.replays import KnownReplays
from waybill_status.app.outcomes.hub import Hub
from waybill_status.app.outcomes.tokens import Tokens
from waybill_status.core.outcomes.outcome import Outcome

DONE = slot(copy=(5,), lake=(5,))
SHORT = slot(copy=(5,), lake=(4,))


@dataclass
class World:
    store: FakeStore
    owners: FakeOwners
    clock: FixedClock
    hub: Hub
    tokens: Tokens
    replays: KnownReplays

    async def kind(self, asked: Token) -> OutcomeKind:
        (outcome,) = await self.tokens.now([asked])
        assert isinstance(outcome, Outcome)
        return outcome.outcome


@asynccontextmanager
async def world(*, waiters_max: int = 100, store: FakeStore | None = None) -> AsyncIterator[World]:
    store, clock, owners = store or FakeStore(), FixedClock(), FakeOwners(record())
    replays = KnownReplays()
    hub = Hub(store, waiters_max=waiters_max, tick_s=TICK_S, replays=replays)
    tokens = Tokens(owners, owners, store=store, hub=hub, ring=RING, clock=clock, replays=replays)
    running = asyncio.create_task(hub.run())
    try:
        yield World(store, owners, clock, hub, tokens, replays)
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


async def settled() -> None:
    """Every task that can go on has done so."""
    for _ in range(20):
        await asyncio.sleep(0)
