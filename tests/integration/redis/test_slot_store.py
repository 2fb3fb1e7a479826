"""The tracker's script in a real server, by the cases that the stores in memory pass, too."""

from collections.abc import Callable, Iterator

import pytest
import redis

from contract.slot_store import CASES, SINK, TENANT, UID, Bench, Held
from integration.redis.servers import Valkey
from waybill_shared.contract.slots import Keys, slot_from_json
from waybill_token_tracker.adapters.redis import RedisStore

KEYS = Keys("rules")


class Real:
    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self.store = RedisStore(client, KEYS)

    def held(self) -> Held | None:
        slot, position = self._client.hmget(KEYS.slot(TENANT, UID), ["slot", "position"])
        if slot is None or position is None:
            return None
        history = self._client.zcard(KEYS.history(TENANT, UID, SINK))
        return Held(slot_from_json(slot).generation, int(position), int(history))

    def copy(self) -> object:
        return self._client.dump(KEYS.slot(TENANT, UID))

    def put_back(self, copied: object) -> None:
        assert isinstance(copied, bytes)
        self._client.restore(KEYS.slot(TENANT, UID), 0, copied, replace=True)

    def forget(self) -> None:
        self._client.flushall()

    def move(self) -> None:
        """As if this server had the slot from another one, by a dump or as its replica."""
        key, other = KEYS.slot(TENANT, UID), "0" * 40
        self._client.hset(key, "run_id", other)
        finder = self._client.hget(key, "finder")
        if isinstance(finder, bytes):
            self._client.hset(key, "finder", finder.partition(b"@")[0] + b"@" + other.encode())


@pytest.fixture
def bench(valkey: Valkey) -> Iterator[Real]:
    with valkey.client() as client:
        client.flushall()
        yield Real(client)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_script_keeps_the_rules(bench: Real, case: Callable[[Bench], None]) -> None:
    case(bench)
