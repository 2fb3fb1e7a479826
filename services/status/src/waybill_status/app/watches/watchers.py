"""Reports the results of watched tokens. Promise: each watch is reported once, and never before its
token is final, whatever crashes and whichever process takes over.

The consumer group of all status processes assigns the partitions of `waybill.watches`. A new owner
first shuts out the old one, and only then reads the partition to its end. An event, and the new
state of its watch, are one transaction. An open watch is a question of the hub, like a request that
waits. The owner of a watch's partition also sends its event to the webhook.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

from waybill_shared.contract.deliveries import WebhookDelivery
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.watches import TokenWatch
from waybill_shared.kafka.partition_producer import PartitionLost
from waybill_shared.topic_views.watches import WatchBook
from waybill_status.app.measuring import show_deliveries, show_watches
from waybill_status.app.ports import News, WatchShares, WatchWriter, WatchWriters
from waybill_status.app.watches.deliveries import DeliveryMeans, PartitionDeliveries
from waybill_status.app.watches.open_watches import OpenWatches
from waybill_status.app.watches.watch_judge import WatchJudge

logger = logging.getLogger(__name__)

LOOK_S: Final = 0.2  # between two checks of which partitions are ours
RETRY_S: Final = 1.0


class Watchers:
    """The watches of the partitions that this process owns; used on the event loop only."""

    def __init__(
        self,
        judge: WatchJudge,
        book: WatchBook,
        news: News,
        *,
        writers: WatchWriters,
        shares: WatchShares,
        means: DeliveryMeans,
    ) -> None:
        self._judge = judge
        self._book = book
        self._news = news
        self._writers = writers
        self._shares = shares
        self._means = means
        self._owned: dict[int, _Owned] = {}

    def receive(self, watch: TokenWatch) -> None:
        """Receive a watch. It is in the book already."""
        if (owned := self._owner_of(watch.id)) is not None:
            owned.watched.receive(watch)
            owned.due.receive_watch(watch)

    def receive_delivery(self, delivery: WebhookDelivery) -> None:
        """Receive a delivery. It is in its book already."""
        if (owned := self._owner_of(delivery.watch)) is not None:
            owned.due.receive(delivery)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        looking = asyncio.create_task(self._run())
        try:
            yield
        finally:
            looking.cancel()
            await asyncio.wait([looking])

    async def _run(self) -> None:
        owners: list[asyncio.Task[None]] = []
        epoch = -1
        try:
            while True:
                if epoch != self._shares.epoch:
                    await _end(owners)
                    epoch = self._shares.epoch
                    owners = [asyncio.create_task(self._own(p)) for p in self._shares.mine]
                self._show()
                await asyncio.sleep(LOOK_S)
        except Exception:
            logger.exception("no watches are reported here any more")
            raise
        finally:
            await _end(owners)

    def _show(self) -> None:
        owned = [*self._owned.values()]
        since = [at for each in owned for at in each.watched.due_since()]
        age_ms = self._judge.now_ms() - min(since) if since else 0
        show_watches(sum(each.watched.count for each in owned), age_ms)
        show_deliveries(sum(each.due.count for each in owned))

    async def _own(self, partition: int) -> None:
        """Run one partition until another process gets it. After an error, start again."""
        while True:
            try:
                async with self._writers.writer(partition) as writer:
                    await self._care_for(partition, writer)
            except PartitionLost as lost:
                # Retried while the group says that it is ours: a late process may have claimed it.
                logger.warning("another status reports these watches", extra={"reason": str(lost)})
            except Retryable as error:
                logger.warning("watches are not reported now", extra={"reason": str(error)})
            except Exception:
                logger.exception("reporting watches has failed")
            await asyncio.sleep(RETRY_S)

    async def _care_for(self, partition: int, writer: WatchWriter) -> None:
        if not await self._news.catch_up():
            raise Retryable("this status has not read all watches yet")
        owned = self._owned[partition] = _Owned(
            OpenWatches(self._judge, self._book, self._news), PartitionDeliveries(self._means)
        )
        try:
            for delivery in self._means.book.all_due():
                if self._owner_of(delivery.watch) is owned:
                    owned.due.receive(delivery)
            for watch in self._book.all():
                left = watch.open or watch.redeliveries
                if left and self._owner_of(watch.id) is owned:
                    owned.watched.receive(watch)
                    owned.due.receive_watch(watch)
            await _until_one_fails(
                owned.watched.begin_all(),
                owned.watched.report_all(writer),
                owned.due.write_all(writer),
            )
        finally:
            del self._owned[partition]
            owned.watched.end()
            owned.due.end()

    def _owner_of(self, watch: str) -> "_Owned | None":
        return self._owned.get(self._shares.partition_of(watch))


class _Owned(NamedTuple):
    watched: OpenWatches
    due: PartitionDeliveries


async def _until_one_fails(*endless: Coroutine[None, None, None]) -> None:
    """Run all until one fails. This is no `TaskGroup`: if that is cancelled when one of its tasks
    has just failed, it forgets the error."""
    tasks = [asyncio.create_task(each) for each in endless]
    try:
        ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await _end(tasks)
    for task in ended:
        task.result()


async def _end(tasks: Iterable[asyncio.Task[None]]) -> None:
    for task in (ending := [*tasks]):
        task.cancel()
    await asyncio.gather(*ending, return_exceptions=True)
