"""Sends the deliveries of one partition of watches. Each is tried until its webhook has accepted
it, or is given up. The result of an attempt is in Kafka before the next attempt, so a crash repeats
at most one."""

import asyncio
import logging
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from waybill_shared.contract.deliveries import WebhookDelivery, new_delivery
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.status_events import webhook_failed_event
from waybill_shared.contract.watches import TokenWatch
from waybill_shared.contract.webhooks import read_target
from waybill_shared.contract.words import DeliveryState, WatchState
from waybill_shared.process.clock import Clock
from waybill_shared.topic_views.watches import WatchBook
from waybill_status.app.measuring import count_attempt
from waybill_status.app.ports import DeliveryNote, EventLookup, Receivers, WatchWriter
from waybill_status.app.watches.host_permits import HostPermits
from waybill_status.core.watches.deliveries import (
    TRIED_MS,
    Answered,
    after_attempt,
    give_up,
    wait_ms,
)
from waybill_status.core.watches.delivery_book import DeliveryBook

logger = logging.getLogger(__name__)

RETRY_S: Final = 1.0
TOGETHER_MAX: Final = 100  # results in one transaction
FORGOTTEN: Final = "its event is not kept any more"
NO_PERMIT: Final = "it got no permit for 24 hours: others of its API key were sent to its host"
UNWATCHED: Final = "the watch was deleted"


@dataclass(slots=True, kw_only=True)
class DeliveryMeans:
    """The means that all partitions share."""

    book: DeliveryBook
    watches: WatchBook
    receivers: Receivers
    events: EventLookup
    permits: HostPermits
    clock: Clock
    source: str
    luck: random.Random = field(default_factory=random.Random)


class PartitionDeliveries:
    """The deliveries of one partition; used on the event loop only."""

    def __init__(self, means: DeliveryMeans) -> None:
        self._means = means
        self._carried: dict[str, tuple[WebhookDelivery, asyncio.Task[None]]] = {}
        """Deliveries in progress, as they were when they started."""
        self._over: dict[str, int] = {}
        """By watch: the redelivery that ended here, until that is read from Kafka."""
        self._notes: dict[str, tuple[DeliveryNote, asyncio.Future[None]]] = {}
        self._changed = asyncio.Event()
        self._together = TOGETHER_MAX

    @property
    def count(self) -> int:
        return len(self._carried)

    def receive(self, delivery: WebhookDelivery) -> None:
        """Receive a delivery. It is in the book already."""
        watch = self._means.watches.find(delivery.watch)
        if not delivery.due:
            self._forget(delivery)
        elif delivery.redelivery <= self._redelivery_here(delivery.watch):
            return
        elif watch is not None and watch.closed:
            self._note(give_up(delivery, self._now_ms(), UNWATCHED))
        else:
            self._carry(delivery)

    def receive_watch(self, watch: TokenWatch) -> None:
        """Receive a watch. For one that was just reported a delivery follows, so nothing is done
        here. What is left are deleted watches, and those to be sent again."""
        carried = self._carried.get(watch.id)
        if watch.closed and carried is not None:
            self._end_task(watch.id)
            self._note(give_up(carried[0], self._now_ms(), UNWATCHED))
        elif (
            watch.state == WatchState.REPORTED and watch.webhook is not None and watch.redeliveries
        ):
            before = self._means.book.get(watch.id)
            known = carried[0] if carried is not None else before
            newest = max(
                self._redelivery_here(watch.id), -1 if before is None else before.redelivery
            )
            if watch.redeliveries > newest and (known is not None or self._is_fresh(watch)):
                event = known.event if known is not None else ""
                self._carry(new_delivery(watch, watch.webhook, event, self._now_ms()))

    async def write_all(self, writer: WatchWriter) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            while self._notes:
                await self._write(writer, [*islice(self._notes.values(), self._together)])

    def end(self) -> None:
        for each in [*self._carried]:
            self._end_task(each)

    def _redelivery_here(self, watch: str) -> int:
        carried = self._carried.get(watch)
        return max(self._over.get(watch, -1), -1 if carried is None else carried[0].redelivery)

    def _now_ms(self) -> int:
        return self._means.clock.now_ms()

    def _carry(self, delivery: WebhookDelivery) -> None:
        self._end_task(delivery.watch)
        task = asyncio.create_task(self._deliver(delivery))
        task.add_done_callback(_log_fault)
        self._carried[delivery.watch] = (delivery, task)

    def _end_task(self, watch: str) -> None:
        carried = self._carried.pop(watch, None)
        if carried is not None:
            carried[1].cancel()

    def _is_fresh(self, watch: TokenWatch) -> bool:
        """Return True if the redelivery is recent; otherwise its delivery is over and forgotten."""
        return self._now_ms() - (watch.redelivery_at or 0) < TRIED_MS

    def _forget(self, ended: WebhookDelivery) -> None:
        if ended.redelivery >= self._over.get(ended.watch, 0):
            self._over.pop(ended.watch, None)
        carried = self._carried.get(ended.watch)
        if carried is not None and carried[0].redelivery <= ended.redelivery:
            self._end_task(ended.watch)

    async def _deliver(self, delivery: WebhookDelivery) -> None:
        """Try until the delivery is over."""
        event = delivery.event or await self._find_event(delivery)
        silent = False
        while delivery.due:
            if event is None:
                delivery = give_up(delivery, self._now_ms(), FORGOTTEN)
            else:
                await asyncio.sleep(wait_ms(delivery, self._now_ms()) / 1000)
                delivery, silent = await self._attempt(delivery, event, silent=silent)
            noted = self._note(delivery)
            if not delivery.due:
                del self._carried[delivery.watch]
            await noted

    async def _attempt(
        self, delivery: WebhookDelivery, event: str, *, silent: bool
    ) -> tuple[WebhookDelivery, bool]:
        """Return the delivery after one attempt, and whether there was no answer."""
        loop = asyncio.get_running_loop()
        due_at_s = loop.time()
        try:
            answer = await self._send(delivery, event, silent=silent)
        except TimeoutError:
            return give_up(delivery, self._now_ms(), NO_PERMIT), silent
        except Exception:
            logger.exception("an event was not sent", extra={"watch": delivery.watch})
            answer = Answered(error="a fault of status, whose log has the reason")
        took_ms, luck = int((loop.time() - due_at_s) * 1000), self._means.luck.random()
        now_ms = self._now_ms()
        after = after_attempt(delivery, answer, now_ms=now_ms, took_ms=took_ms, luck=luck)
        return after, answer.silent

    async def _send(self, delivery: WebhookDelivery, event: str, *, silent: bool) -> Answered:
        """Send the event once. Raises TimeoutError if it gets no permit in all the time for which
        it may be tried."""
        watch = self._means.watches.find(delivery.watch)
        owner = ("", "") if watch is None else (watch.tenant, watch.actor)
        line = *owner, read_target(delivery.webhook.url).host
        async with self._means.permits.of(line, TRIED_MS / 1000, silent=silent) as permit:
            answer = await self._means.receivers.send(delivery, event, self._now_ms() // 1000)
            permit.finish(answer)
            return answer

    async def _find_event(self, delivery: WebhookDelivery) -> str | None:
        """Return the event as it was written; None if it is not kept any more."""
        while True:
            watch = self._means.watches.find(delivery.watch)
            try:
                return None if watch is None else await self._means.events.find(watch)
            except Retryable as error:
                logger.warning("an event is not read now", extra={"reason": str(error)})
                await asyncio.sleep(RETRY_S)

    def _note(self, delivery: WebhookDelivery) -> asyncio.Future[None]:
        """Queue the result for Kafka. Return a future that is done when the result is in Kafka."""
        watch = self._means.watches.find(delivery.watch)
        event = None
        if delivery.state == DeliveryState.FAILED and watch is not None and not watch.closed:
            source, now_ms = self._means.source, self._now_ms()
            event = webhook_failed_event(watch, delivery, source=source, now_ms=now_ms)
        count_attempt(delivery.state)
        if not delivery.due:
            self._over[delivery.watch] = delivery.redelivery
        noted = asyncio.get_running_loop().create_future()
        self._notes[delivery.watch] = (DeliveryNote(delivery, event), noted)
        self._changed.set()
        return noted

    async def _write(
        self, writer: WatchWriter, notes: Sequence[tuple[DeliveryNote, asyncio.Future[None]]]
    ) -> None:
        """Write results to Kafka. After a failure fewer are written at once, so that one that Kafka
        refuses does not block the others."""
        try:
            await writer.note([note for note, _ in notes])
        except Retryable as error:
            logger.warning("deliveries are not noted now", extra={"reason": str(error)})
            self._together = max(1, len(notes) // 2)
            first = notes[0][0].delivery.watch
            self._notes[first] = self._notes.pop(first)
            await asyncio.sleep(RETRY_S)
            return
        self._together = TOGETHER_MAX
        for note, noted in notes:
            if self._notes[note.delivery.watch][1] is noted:
                del self._notes[note.delivery.watch]
            if not noted.done():
                noted.set_result(None)


def _log_fault(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (fault := task.exception()) is not None:
        logger.error("a delivery has failed", exc_info=fault)
