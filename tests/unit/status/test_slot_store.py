"""The store of status in memory answers as the real one does."""

import asyncio
from collections.abc import Sequence

import pytest

from contracts.slot_store import Ask, SlotStoreContract, T
from unit.status.fakes import FakeStore
from unit.status.slots import reading
from waybill_shared.contract.slots import DeadEntry, Progress, Slot


class Fake:
    def __init__(self) -> None:
        self._store = FakeStore()
        self._written = 0

    def ask(self, question: Ask[T]) -> T:
        async def run() -> T:
            return await question(self._store)

        return asyncio.run(run())

    def write(
        self,
        slot: Slot,
        *,
        mark: str,
        history: Sequence[Progress] = (),
        dead: Sequence[DeadEntry] = (),
    ) -> None:
        self._written += 1
        key = (slot.tenant, slot.pipeline_uid)
        self._store.readings[key] = reading(slot, version=self._written, mark=mark)
        for batch in history:
            self._store.histories.setdefault((key, batch.sink), []).append(batch)
        self._store.letters[key] = (*self._store.letters.get(key, ()), *dead)
        self._store.changes.put_nowait(key)

    def confirm(self, slot: Slot, *, mark: str) -> None:
        self._store.age(0)

    def grow_old(self, slot: Slot, by_ms: int) -> None:
        self._store.age(by_ms)

    def forget(self) -> None:
        self._store.readings.clear()
        self._store.histories.clear()
        self._store.letters.clear()

    def move(self) -> None:
        self._store.server = "another"

    def cut_off(self) -> None:
        self._store.away = True


class TestFakeStore(SlotStoreContract):
    @pytest.fixture
    def bench(self) -> Fake:
        return Fake()
