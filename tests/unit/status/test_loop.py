"""Nobody waits for a hub that has died: the server ends, and the process says so."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from fastapi import FastAPI

from clocks import FixedClock
from unit.status.fakes import FakeOwners, FakeStore
from unit.status.histories import LifeTopic
from unit.status.slots import RING, record
from waybill_shared.contract.deliveries import WebhookDelivery
from waybill_shared.contract.watches import TokenWatch
from waybill_shared.kafka.replies import Replies
from waybill_status.adapters.kafka.followers import Listeners
from waybill_status.app.event_log import EventLog
from waybill_status.app.outcomes.hub import Hub
from waybill_status.app.outcomes.tokens import Tokens
from waybill_status.app.pipelines.events import Events
from waybill_status.app.pipelines.history import History
from waybill_status.loop import Loop


class Around:
    """What is closed at the end: Redis, and the followers of topics."""

    def __init__(self) -> None:
        self.ended: list[str] = []

    async def close(self) -> None:
        self.ended.append("redis")

    def receive(self, watch: TokenWatch) -> None:
        """Nothing."""

    def receive_delivery(self, delivery: WebhookDelivery) -> None:
        """Nothing."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        yield
        self.ended.append("watchers")

    @contextmanager
    def notify(self, listeners: Listeners) -> Iterator[None]:
        yield
        self.ended.append("followers")


class DeadHub(Hub):
    async def run(self) -> None:
        raise RuntimeError("a fault of ours")


def loop_of(hub: Hub, around: Around) -> Loop:
    store = FakeStore()
    owners = FakeOwners(record())
    tokens = Tokens(owners, owners, store=store, hub=hub, ring=RING, clock=FixedClock())
    events = Events(lambda: None)
    return Loop(
        slots=around,  # type: ignore[arg-type]
        followers=around,  # type: ignore[arg-type]
        hub=hub,
        tokens=tokens,
        replies=Replies(),
        events=events,
        history=History(events, LifeTopic(), streams_max=1),
        watchers=around,  # type: ignore[arg-type]
        log=EventLog(around, begins=dict, streams_max=1),  # type: ignore[arg-type]
    )


async def live(loop: Loop) -> None:
    async with loop.run(FastAPI()):
        await asyncio.sleep(0.01)


def test_the_server_ends_when_the_hub_has_died() -> None:
    around = Around()
    loop = loop_of(DeadHub(FakeStore(), waiters_max=1), around)
    asyncio.run(live(loop))
    assert loop.failed.is_set()
    assert around.ended == ["watchers", "followers", "redis"]


def test_a_hub_that_is_told_to_end_has_not_died() -> None:
    around = Around()
    loop = loop_of(Hub(FakeStore(), waiters_max=1), around)
    asyncio.run(live(loop))
    assert not loop.failed.is_set()
    assert around.ended == ["watchers", "followers", "redis"]
