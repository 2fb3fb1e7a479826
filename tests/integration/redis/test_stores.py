"""The tracker's script and the readers' scripts in a real server."""

import asyncio
from collections.abc import Iterator
from typing import cast

import pytest
import redis
from redis.asyncio import Redis
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.retry import Retry

from contracts import store
from contracts.slot_store import Ask, SlotStoreContract, T, WritesSlots
from contracts.store import Held, StoreContract
from integration.conftest import free_port
from integration.redis.servers import Valkey
from waybill_local.ports import HOST
from waybill_shared.contract.slots import (
    Keys,
    Slot,
    dead_from_json,
    slot_from_json,
)
from waybill_status.adapters.redis import RedisSlots
from waybill_token_tracker.adapters.redis import RedisStore

KEYS = Keys("rules")
OTHER_SERVER = "0" * 40


class Real(WritesSlots):
    def __init__(self, client: redis.Redis, port: int) -> None:
        self._client = client
        self._port = port
        self.store = RedisStore(client, KEYS)

    def held(self) -> Held | None:
        key = KEYS.slot(store.TENANT, store.UID)
        slot, position = self._client.hmget(key, ["slot", "position"])
        if slot is None or position is None:
            return None
        history = self._client.zcard(KEYS.history(store.TENANT, store.UID, store.SINK))
        found = slot_from_json(slot)
        dead = tuple(
            dead_from_json(cast(bytes, raw))
            for count in found.dead
            for raw in self._client.zrange(
                KEYS.dead(store.TENANT, store.UID, count.topic_id, count.partition), 0, -1
            )
        )
        return Held(found.generation, int(position), int(history), dead)

    def copy(self) -> object:
        return self._client.dump(KEYS.slot(store.TENANT, store.UID))

    def put_back(self, copied: object) -> None:
        assert isinstance(copied, bytes)
        self._client.restore(KEYS.slot(store.TENANT, store.UID), 0, copied, replace=True)

    def ask(self, question: Ask[T]) -> T:
        async def run() -> T:
            once = AsyncRetry(NoBackoff(), 0)
            async with Redis(host=HOST, port=self._port, retry=once) as client:
                return await question(RedisSlots(client, KEYS))

        return asyncio.run(run())

    def grow_old(self, slot: Slot, by_ms: int) -> None:
        self._client.hincrby(KEYS.slot(slot.tenant, slot.pipeline_uid), "confirmed_at", -by_ms)

    def forget(self) -> None:
        self._client.flushall()

    def move(self) -> None:
        """As if this server had its slots from another one, by a dump or as its replica."""
        for key in self._client.scan_iter("*:slot"):
            self._client.hset(key, "run_id", OTHER_SERVER)
            finder = self._client.hget(key, "finder")
            if isinstance(finder, bytes):
                found = finder.partition(b"@")[0] + b"@" + OTHER_SERVER.encode()
                self._client.hset(key, "finder", found)

    def cut_off(self) -> None:
        self._port = free_port()
        client = redis.Redis(host=HOST, port=self._port, retry=Retry(NoBackoff(), 0))
        self.store = RedisStore(client, KEYS)


@pytest.fixture
def bench(valkey: Valkey) -> Iterator[Real]:
    with valkey.client() as client:
        client.flushall()
        yield Real(client, valkey.port)


class TestRedisStore(StoreContract):
    """Over a server."""


class TestRedisSlots(SlotStoreContract):
    """Over a server."""
