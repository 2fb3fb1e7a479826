"""The tracker's store in memory keeps the rules of the script in Redis."""

import copy

import pytest

from contracts.store import UID, Held, StoreContract
from unit.token_tracker.fakes import FakeStore


class Fake:
    def __init__(self) -> None:
        self.store = FakeStore()

    def held(self) -> Held | None:
        stored = self.store.slots.get(UID)
        if stored is None:
            return None
        dead = tuple(sorted(stored.dead, key=lambda each: (each.partition, each.end)))
        return Held(stored.slot.generation, stored.position, len(stored.history), dead)

    def copy(self) -> object:
        return copy.deepcopy(self.store.slots)

    def put_back(self, copied: object) -> None:
        assert isinstance(copied, dict)
        self.store.slots = copied

    def forget(self) -> None:
        self.store.slots.clear()
        self.store.finders.clear()

    def move(self) -> None:
        self.store.server = "two"

    def cut_off(self) -> None:
        self.store.away = True


class TestFakeStore(StoreContract):
    @pytest.fixture
    def bench(self) -> Fake:
        return Fake()
