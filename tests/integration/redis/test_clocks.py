"""Hosts whose clocks differ: the server's own clock says how old a slot is."""

import asyncio

import pytest
import redis
from redis.asyncio import Redis

from containers import Servers
from waybill_shared.contract.slots import NON_FINAL_AGE_MS_MAX, Keys, Slot
from waybill_shared.process.clock import SystemClock
from waybill_status.adapters.redis import RedisSlots
from waybill_status.core.outcomes.views import SlotReading
from waybill_token_tracker.adapters.redis import RedisStore
from waybill_token_tracker.app.ports import SlotWrite, WriteResult

HOUR_MS = 3_600_000
SECOND_MS = 1_000


def write(servers: Servers, keys: Keys, at: int, slot: Slot | None, *, mark: str) -> None:
    client = redis.Redis.from_url(servers.redis)
    one = SlotWrite(
        writer="me",
        tenant="default",
        pipeline_uid="p",
        topic_id="C",
        partition=0,
        position=1,
        at=at,
        slot=slot,
        mark=mark,
        rebuilt=slot is not None,
    )
    store = RedisStore(client, keys)
    if one.rebuilt:
        store.write([one])  # finds out that it is missing
    assert store.write([one]) == [WriteResult.WRITTEN]
    client.close()


def read(servers: Servers, keys: Keys) -> SlotReading:
    async def ask() -> SlotReading:
        client = Redis.from_url(servers.redis)
        try:
            return (await RedisSlots(client, keys).read([("default", "p")]))["default", "p"]
        finally:
            await client.aclose()

    return asyncio.run(ask())


@pytest.mark.parametrize("ahead_ms", [-HOUR_MS, 0, HOUR_MS])
def test_a_slot_is_fresh_whatever_the_trackers_clock_shows(servers: Servers, ahead_ms: int) -> None:
    """Red before: five seconds between the clocks of two hosts, and nobody could be answered."""
    keys = Keys(f"clocks{ahead_ms}")
    trackers = SystemClock().now_ms() + ahead_ms
    slot = Slot(tenant="default", pipeline_uid="p", heard_at=trackers)

    write(servers, keys, trackers, slot, mark="1")
    stamp = read(servers, keys).stamp

    assert stamp.fresh
    assert stamp.age_ms is not None
    assert abs(stamp.now_ms - trackers - stamp.age_ms) < SECOND_MS

    client = redis.Redis.from_url(servers.redis)
    place = keys.slot("default", "p")
    client.hincrby(place, "confirmed_at", -NON_FINAL_AGE_MS_MAX - 1)
    assert not read(servers, keys).stamp.fresh
    write(servers, keys, trackers, None, mark="1")
    assert read(servers, keys).stamp.fresh
    client.delete(place)
    client.close()
