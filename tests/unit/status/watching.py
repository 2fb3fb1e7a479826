"""Processes that tell of watches, and the topics between them, in memory."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

from clocks import NOW, FixedClock
from unit.status.fakes import FakeOwners, FakeStore
from unit.status.slots import RING, record, sealed, span, token
from waybill_shared.access.authentication import DEFAULT_TENANT
from waybill_shared.contract.codec import to_json
from waybill_shared.contract.deliveries import WebhookDelivery
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.status_events import StatusEvent
from waybill_shared.contract.token_life import TOKEN_LIFE_MS
from waybill_shared.contract.watch_details import WatchDetail, watch_detail
from waybill_shared.contract.watches import TokenWatch
from waybill_shared.contract.webhooks import Webhook
from waybill_shared.contract.words import WatchState
from waybill_shared.kafka.partition_producer import PartitionLost
from waybill_shared.topic_views.watches import WatchBook
from waybill_status.adapters.http.tokens import outcome_json
from waybill_status.app.outcomes.hub import Hub
from waybill_status.app.outcomes.tokens import Tokens
from waybill_status.app.ports import DeliveryNote, WatchReport
from waybill_status.app.watches.deliveries import DeliveryMeans
from waybill_status.app.watches.host_permits import HostPermits
from waybill_status.app.watches.watch_judge import WatchJudge
from waybill_status.app.watches.watchers import Watchers
from waybill_status.core.watches.deliveries import Answered
from waybill_status.core.watches.delivery_book import DeliveryBook

TEXT = sealed(token(span(0, 5)))


def watch(id: str, text: str = TEXT, url: str | None = None) -> TokenWatch:
    return TokenWatch(
        id=id,
        tenant=DEFAULT_TENANT,
        actor="key",
        token=text,
        at=NOW,
        expires_at=NOW + TOKEN_LIFE_MS,
        state=WatchState.OPEN,
        labels={"batch": "7"},
        webhook=None if url is None else Webhook(url=url, secret="sealed"),
    )


class Log:
    """Topics: `waybill.watches`, `status` and `deliveries`. One partition, and who may write
    to it."""

    def __init__(self) -> None:
        self.watches: list[TokenWatch] = []
        self.deliveries: list[WebhookDelivery] = []
        self.events: list[StatusEvent] = []
        self.owner = 0
        self.faults: list[str] = []
        self.note_faults: list[str] = []
        self.never = ""
        self.taken_away: Callable[[], None] | None = None
        """Called in the moment in which a partition is lost to another."""
        self.listeners: list[Callable[[TokenWatch | WebhookDelivery], None]] = []

    def write(self, *written: TokenWatch | WebhookDelivery) -> None:
        for each in written:
            if isinstance(each, TokenWatch):
                self.watches.append(each)
            else:
                self.deliveries.append(each)
            for receive in self.listeners:
                receive(each)

    @asynccontextmanager
    async def writer(self, partition: int) -> AsyncIterator["Writer"]:
        assert partition == 0
        self.owner += 1
        yield Writer(self, self.owner)


class Writer:
    def __init__(self, log: Log, number: int) -> None:
        self._log = log
        self._number = number

    async def report(self, reports: Sequence[WatchReport]) -> None:
        await asyncio.sleep(0)
        if (taken_away := self._log.taken_away) is not None:
            self._log.taken_away = None
            taken_away()
            raise PartitionLost("another has begun")
        self._check()
        fault = self._log.faults.pop() if self._log.faults else ""
        if fault == "before" or self._log.never in {each.watch.id for each in reports}:
            raise Retryable("kafka is away")
        self._log.events.extend(each.event for each in reports)
        for each in reports:
            self._log.write(each.watch, *filter(None, [each.delivery]))
        if fault == "after":
            raise Retryable("nobody knows")

    async def note(self, notes: Sequence[DeliveryNote]) -> None:
        await asyncio.sleep(0)
        self._check()
        if self._log.note_faults:
            self._log.note_faults.pop()
            raise Retryable("kafka is away")
        for delivery, event in notes:
            self._log.write(delivery)
            if event is not None:
                self._log.events.append(event)

    async def finish(self) -> None:
        self._check()

    def _check(self) -> None:
        if self._log.owner != self._number:
            raise PartitionLost("another has begun")


class Shares:
    def __init__(self) -> None:
        self.mine = frozenset({0})
        self.epoch = 1

    def partition_of(self, key: str) -> int:
        return 0

    def give(self, *partitions: int) -> None:
        self.mine, self.epoch = frozenset(partitions), self.epoch + 1


class News:
    async def catch_up(self) -> bool:
        await asyncio.sleep(0)
        return True


class Receiver:
    """Webhooks, of all processes; what each says in turn, and then 204."""

    def __init__(self) -> None:
        self.says: dict[str, list[Answered]] = {}
        self.broken: list[str] = []
        self.sent: list[tuple[WebhookDelivery, int]] = []
        self.hold = asyncio.Event()
        self.hold.set()

    async def attempts(self, count: int) -> None:
        """Wait until so many were begun."""
        while len(self.sent) < count:
            await asyncio.sleep(0.005)

    async def send(self, delivery: WebhookDelivery, event: str, now_s: int) -> Answered:
        self.sent.append((replace(delivery, event=event), now_s))
        if delivery.watch in self.broken:
            self.broken.remove(delivery.watch)
            raise RuntimeError("a fault of ours")
        await self.hold.wait()
        left = self.says.get(delivery.watch)
        return left.pop(0) if left else Answered(status=204)


class PastEvents:
    def __init__(self, log: Log) -> None:
        self._log = log

    async def find(self, watch: TokenWatch) -> str | None:
        await asyncio.sleep(0)
        found = [each for each in self._log.events if each.id == watch.event_id]
        return to_json(found[0]) if found else None


class Process:
    def __init__(self, scene: "Scene") -> None:
        log, store, owners, clock = scene.log, scene.store, scene.owners, scene.clock
        self.hub = Hub(store, waiters_max=1, tick_s=0.01)
        self.tokens = Tokens(owners, owners, store=store, hub=self.hub, ring=RING, clock=clock)
        judge = WatchJudge(self.tokens, self.hub, clock, source="/waybill/test", show=outcome_json)
        self.book, self.shares = WatchBook(), Shares()
        self.deliveries = DeliveryBook()
        means = DeliveryMeans(
            book=self.deliveries,
            watches=self.book,
            receivers=scene.receiver,
            events=PastEvents(log),
            permits=HostPermits(),
            clock=clock,
            source="/waybill/test",
        )
        self.watchers = Watchers(
            judge, self.book, News(), writers=log, shares=self.shares, means=means
        )
        for watch in log.watches:
            self.book.accept(watch)
        for delivery in log.deliveries:
            self.deliveries.accept(delivery)
        log.listeners.append(self._hear)

    def _hear(self, each: TokenWatch | WebhookDelivery) -> None:
        loop = asyncio.get_running_loop()
        if isinstance(each, TokenWatch):
            self.book.accept(each)
            loop.call_soon(self.watchers.receive, each)
        else:
            self.deliveries.accept(each)
            loop.call_soon(self.watchers.receive_delivery, each)

    def watch(self, id: str) -> TokenWatch:
        watch = self.book.find(id)
        assert watch is not None
        return watch

    def detail(self, id: str) -> WatchDetail:
        """As `GET /v1/watches/{id}` answers."""
        watch = self.book.get(DEFAULT_TENANT, id)
        assert watch is not None
        return watch_detail(watch, self.deliveries.get(id))


class Scene:
    def __init__(self, stack: AsyncExitStack) -> None:
        self._stack = stack
        self.log, self.store, self.clock = Log(), FakeStore(), FixedClock()
        self.owners = FakeOwners(record())
        self.receiver = Receiver()

    async def process(self) -> Process:
        found = Process(self)
        feeding = asyncio.create_task(found.hub.run())
        self._stack.callback(feeding.cancel)
        await self._stack.enter_async_context(found.watchers.running())
        return found

    async def reports(self, count: int) -> list[StatusEvent]:
        while len(self.log.events) < count:
            await asyncio.sleep(0.005)
        await self.quiet()
        return self.log.events

    async def quiet(self) -> None:
        for _ in range(10):
            await asyncio.sleep(0.005)


@asynccontextmanager
async def scene() -> AsyncIterator[Scene]:
    async with AsyncExitStack() as stack:
        yield Scene(stack)
