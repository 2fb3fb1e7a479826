"""The simulation's Redis keeps the rules of the real one, for the tracker and for status."""

import asyncio

import pytest

from contracts import store
from contracts.slot_store import Ask, SlotStoreContract, T, WritesSlots
from contracts.store import Held, StoreContract
from sim.clocks import TrueClock
from sim.redis_server import RedisServer, Slots, Store
from waybill_shared.contract.slots import Slot

KEY = (store.TENANT, store.UID)


class Simulated(WritesSlots):
    def __init__(self) -> None:
        self._clock = TrueClock()
        self._server = RedisServer(self._clock)
        self.store = Store(self._server)

    def held(self) -> Held | None:
        stored = self._server.stored.get(KEY)
        if stored is None:
            return None
        history = stored.history.get(store.SINK, ())
        return Held(stored.slot.generation, stored.position, len(history), stored.dead)

    def copy(self) -> object:
        return dict(self._server.stored)

    def put_back(self, copied: object) -> None:
        assert isinstance(copied, dict)
        self._server.stored = copied

    def ask(self, question: Ask[T]) -> T:
        async def run() -> T:
            return await question(Slots(self._server))

        return asyncio.run(run())

    def grow_old(self, slot: Slot, by_ms: int) -> None:
        self._clock.now += by_ms

    def forget(self) -> None:
        self._server.flush()

    def move(self) -> None:
        self._server.restart(dict(self._server.stored))

    def cut_off(self) -> None:
        self._server.away = True


@pytest.fixture
def bench() -> Simulated:
    return Simulated()


class TestStore(StoreContract):
    """Over `RedisServer`."""


class TestSlots(SlotStoreContract):
    """Over `RedisServer`."""
