"""The stores in memory keep the rules of the script in Redis: so tests with them prove something.

The same cases against the script: `integration/redis/test_slot_store.py`.
"""

import copy
from collections.abc import Callable

import pytest

from contract.slot_store import CASES, SINK, TENANT, UID, Bench, Held
from sim.clocks import TrueClock
from sim.redis_server import RedisServer, Store
from unit.token_tracker.fakes import FakeStore

KEY = (TENANT, UID)


class Fake:
    def __init__(self) -> None:
        self.store = FakeStore()

    def held(self) -> Held | None:
        stored = self.store.slots.get(UID)
        if stored is None:
            return None
        return Held(stored.slot.generation, stored.position, len(stored.history))

    def copy(self) -> object:
        return copy.deepcopy(self.store.slots)

    def put_back(self, copied: object) -> None:
        assert isinstance(copied, dict)
        self.store.slots = copied

    def forget(self) -> None:
        self.store.slots.clear()
        self.store.finders.clear()

    def move(self) -> None:
        """It knows of one server only: what another one held is as if it were not there."""
        self.forget()


class Simulated:
    def __init__(self) -> None:
        self._server = RedisServer(TrueClock())
        self.store = Store(self._server)

    def held(self) -> Held | None:
        stored = self._server.stored.get(KEY)
        if stored is None:
            return None
        return Held(stored.slot.generation, stored.position, len(stored.history.get(SINK, ())))

    def copy(self) -> object:
        return dict(self._server.stored)

    def put_back(self, copied: object) -> None:
        assert isinstance(copied, dict)
        self._server.stored = copied

    def forget(self) -> None:
        self._server.flush()

    def move(self) -> None:
        self._server.restart(dict(self._server.stored))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
@pytest.mark.parametrize("bench", [Fake, Simulated])
def test_store_in_memory_keeps_the_rules(
    bench: Callable[[], Bench], case: Callable[[Bench], None]
) -> None:
    case(bench())
