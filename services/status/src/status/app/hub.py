"""Lets many requests wait for few pipelines: one reading per pipeline and change, shared by all.

A wake-up is only an accelerator. Each second the stamps of the awaited pipelines are compared, so
a lost message, a lost connection or a silent tracker is seen within a second, too.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from shared import metrics
from shared.clock import Clock
from shared.errors import Retryable, WaybillError
from shared.slots import Progress
from status.app.details import NEWEST
from status.app.ports import SlotStore
from status.app.signal import happened
from status.core.views import PipelineKey, Reading, Stamp, View, view_of

logger = logging.getLogger(__name__)

TICK_S = 1.0  # between two looks at the stamps, and before another try to subscribe


class TooManyWaiters(WaybillError):
    """The cap on held requests; the caller may ask without waiting."""


class _Feed:
    """One awaited pipeline."""

    def __init__(self, pipeline: PipelineKey) -> None:
        self.pipeline = pipeline
        self.reading: Reading | None = None
        self.view = view_of(None, 0)
        self.loaded = asyncio.Event()
        self.waiters: set[asyncio.Event] = set()
        self.dirty = False
        self.loading: asyncio.Task[None] | None = None
        self.newest: dict[str, asyncio.Task[list[Progress]]] = {}

    def show(self, reading: Reading | None, now_ms: int) -> None:
        """Take a reading; wake the waiters if it can mean another outcome."""
        self.reading = reading
        view, before = view_of(reading, now_ms), self.view
        if view.version != before.version:
            self.newest.clear()
        self.view = view
        self.loaded.set()
        if view != before:
            for waiter in self.waiters:
                waiter.set()


class Watch:
    """The pipelines that one request waits for."""

    def __init__(self, hub: "Hub", feeds: dict[PipelineKey, _Feed], event: asyncio.Event) -> None:
        self._hub = hub
        self._feeds = feeds
        self._event = event

    def view(self, pipeline: PipelineKey) -> View:
        return self._feeds[pipeline].view

    async def newest(self, pipeline: PipelineKey, sink: str) -> list[Progress]:
        return await self._hub.newest(self._feeds[pipeline], sink)

    async def changed(self, timeout_s: float) -> bool:
        """Whether a view has changed, since the last call or within the time."""
        changed = await happened(self._event, timeout_s)
        self._event.clear()
        return changed


class Hub:
    def __init__(
        self, store: SlotStore, clock: Clock, *, waiters_max: int, tick_s: float = TICK_S
    ) -> None:
        self.closing = False
        self.tick_s = tick_s
        self._store = store
        self._clock = clock
        self._waiters_max = waiters_max
        self._waiters = 0
        self._feeds: dict[PipelineKey, _Feed] = {}

    @asynccontextmanager
    async def watch(self, pipelines: Sequence[PipelineKey]) -> AsyncIterator[Watch]:
        if self._waiters >= self._waiters_max:
            raise TooManyWaiters(f"{self._waiters_max} requests wait already: ask without waiting")
        self._count(1)
        event = asyncio.Event()
        feeds = {pipeline: self._join(pipeline, event) for pipeline in pipelines}
        try:
            for feed in feeds.values():
                await feed.loaded.wait()
            event.clear()  # the first reading is no change
            yield Watch(self, feeds, event)
        finally:
            self._count(-1)
            for feed in feeds.values():
                self._leave(feed, event)

    async def run(self) -> None:
        """Feed the watches until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._listen())
            group.create_task(self._tick())

    def close(self) -> None:
        """Let every waiting request answer what it knows."""
        self.closing = True
        for feed in self._feeds.values():
            for waiter in feed.waiters:
                waiter.set()

    async def newest(self, feed: _Feed, sink: str) -> list[Progress]:
        task = feed.newest.get(sink)
        if task is None:
            task = asyncio.create_task(self._store.newest(feed.pipeline, sink, NEWEST))
            feed.newest[sink] = task
        try:
            return await asyncio.shield(task)
        except Retryable:
            if feed.newest.get(sink) is task:
                del feed.newest[sink]
            raise

    def _count(self, change: int) -> None:
        self._waiters += change
        metrics.gauge("waybill_waiters", self._waiters)

    def _join(self, pipeline: PipelineKey, event: asyncio.Event) -> _Feed:
        feed = self._feeds.get(pipeline)
        if feed is None:
            feed = self._feeds[pipeline] = _Feed(pipeline)
            self._refresh(feed)
        feed.waiters.add(event)
        return feed

    def _leave(self, feed: _Feed, event: asyncio.Event) -> None:
        feed.waiters.discard(event)
        if not feed.waiters and self._feeds.get(feed.pipeline) is feed:
            del self._feeds[feed.pipeline]

    def _refresh(self, feed: _Feed) -> None:
        """Read the slot; a change while it is being read means reading it once more."""
        feed.dirty = True
        if feed.loading is None:
            feed.loading = asyncio.create_task(self._load(feed))

    async def _load(self, feed: _Feed) -> None:
        try:
            while feed.dirty:
                feed.dirty = False
                feed.show(await self._read(feed.pipeline), self._clock.now_ms())
        finally:
            feed.loading = None
            feed.loaded.set()

    async def _read(self, pipeline: PipelineKey) -> Reading | None:
        try:
            return (await self._store.read([pipeline]))[pipeline]
        except Retryable as error:
            logger.warning("slot cannot be read", extra={"reason": str(error)})
            return None

    async def _listen(self) -> None:
        while True:
            try:
                async for pipeline in self._store.wakes():
                    feeds = self._feeds
                    awaited = list(feeds.values()) if pipeline is None else [feeds.get(pipeline)]
                    for feed in awaited:
                        if feed is not None:
                            self._refresh(feed)
            except Retryable as error:
                logger.warning("wake-ups are lost for now", extra={"reason": str(error)})
            await asyncio.sleep(self.tick_s)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(self.tick_s)
            feeds = dict(self._feeds)
            if not feeds:
                continue
            try:
                stamps = await self._store.stamps(feeds)
            except Retryable:
                stamps = {}
            for pipeline, feed in feeds.items():
                self._compare(feed, stamps.get(pipeline))

    def _compare(self, feed: _Feed, stamp: Stamp | None) -> None:
        seen = feed.reading
        if stamp is None:
            feed.show(None, self._clock.now_ms())
        elif seen is None or replace(seen.stamp, at=stamp.at) != stamp:
            self._refresh(feed)
        else:
            feed.show(replace(seen, stamp=stamp), self._clock.now_ms())
