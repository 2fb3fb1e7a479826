"""Keeps the views of pipelines that questions wait for: one reading per pipeline and change, shared
by all.

A wake-up message only makes it faster. Each second the stamps of these pipelines are compared. So a
lost message, a lost connection or a silent tracker is seen within a second, too.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import replace

from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.slots import Progress
from waybill_status.app.outcomes.answering import NEWEST
from waybill_status.app.ports import SlotStore
from waybill_status.core.outcomes.claims import Claim
from waybill_status.core.outcomes.needs import Index, alike, needs_of
from waybill_status.core.outcomes.views import PipelineKey, SlotReading, SlotStamp, view_of

logger = logging.getLogger(__name__)


class Feed:
    """One pipeline with waiting questions, and what each question, by its number, needs of it."""

    def __init__(self, pipeline: PipelineKey, store: SlotStore) -> None:
        self.pipeline = pipeline
        self.reading: SlotReading | None = None
        self.view = view_of(None)
        self.loaded = False
        self.questions: set[int] = set()
        self.dirty = False
        self.loading: asyncio.Task[None] | None = None
        self._store = store
        self._needs = Index()
        self._newest: dict[str, asyncio.Task[list[Progress] | Retryable]] = {}

    def show(self, reading: SlotReading | None) -> set[int]:
        """Accept a reading, and return the questions with answers that it may change."""
        view, before = view_of(reading), self.view
        known = self.loaded and alike(view, before)
        self.reading, self.view, self.loaded = reading, view, True
        if view.version != before.version:
            self._newest.clear()
        return self._needs.take(view) if known else set(self.questions)

    def await_change(self, question: int, claim: Claim) -> None:
        """Note what the question was judged by. It is asked again when the outcome can be another
        one."""
        self._needs.put(question, needs_of(claim, self.view))

    def leave(self, question: int) -> None:
        self.questions.discard(question)
        self._needs.drop(question)

    async def newest(self, sink: str) -> list[Progress]:
        task = self._newest.get(sink)
        if task is None:
            task = self._newest[sink] = asyncio.create_task(self._read_newest(sink))
        found = await asyncio.shield(task)
        if isinstance(found, Retryable):
            raise found
        return found

    async def _read_newest(self, sink: str) -> list[Progress] | Retryable:
        """Return Retryable instead of raising it: if all who wait have left, nobody would receive
        it."""
        try:
            return await self._store.newest(self.pipeline, sink, NEWEST)
        except Retryable as error:
            if self._newest.get(sink) is asyncio.current_task():
                del self._newest[sink]
            return error


class Feeds:
    """The feeds of all waiting questions. `on_change` is called with questions that may have new
    answers."""

    def __init__(
        self,
        store: SlotStore,
        *,
        tick_s: float,
        on_change: Callable[[set[int]], None],
    ) -> None:
        self._store = store
        self._tick_s = tick_s
        self._on_change = on_change
        self._feeds: dict[PipelineKey, Feed] = {}

    def join(self, question: int, pipeline: PipelineKey) -> Feed:
        feed = self._feeds.get(pipeline)
        if feed is None:
            feed = self._feeds[pipeline] = Feed(pipeline, self._store)
            self._refresh(feed)
        feed.questions.add(question)
        return feed

    def leave(self, question: int, feed: Feed) -> None:
        feed.leave(question)
        if not feed.questions and self._feeds.get(feed.pipeline) is feed:
            del self._feeds[feed.pipeline]

    async def listen(self) -> None:
        while True:
            try:
                async for pipeline in self._store.wakes():
                    awaited = self._feeds.values() if pipeline is None else self._of(pipeline)
                    for feed in awaited:
                        self._refresh(feed)
            except Retryable as error:
                logger.warning("wake-ups are lost for now", extra={"reason": str(error)})
            await asyncio.sleep(self._tick_s)

    async def look(self) -> None:
        """Compare the stamps of all feeds."""
        feeds = dict(self._feeds)
        if not feeds:
            return
        try:
            stamps = await self._store.stamps(feeds)
        except Retryable:
            stamps = {}
        for pipeline, feed in feeds.items():
            self._compare(feed, stamps.get(pipeline))

    def _of(self, pipeline: PipelineKey) -> Iterable[Feed]:
        feed = self._feeds.get(pipeline)
        return () if feed is None else (feed,)

    def _refresh(self, feed: Feed) -> None:
        """Read the slot. If it changes while it is being read, read it once more."""
        feed.dirty = True
        if feed.loading is None:
            feed.loading = asyncio.create_task(self._load(feed))

    async def _load(self, feed: Feed) -> None:
        try:
            while feed.dirty:
                feed.dirty = False
                self._show(feed, await self._read(feed.pipeline))
        finally:
            feed.loading = None

    async def _read(self, pipeline: PipelineKey) -> SlotReading | None:
        try:
            return (await self._store.read([pipeline]))[pipeline]
        except Retryable as error:
            logger.warning("slot cannot be read", extra={"reason": str(error)})
            return None

    def _compare(self, feed: Feed, stamp: SlotStamp | None) -> None:
        seen = feed.reading
        if stamp is None:
            self._show(feed, None)
        elif seen is None or replace(seen.stamp, at=stamp.at, age_ms=stamp.age_ms) != stamp:
            self._refresh(feed)
        else:
            self._show(feed, replace(seen, stamp=stamp))

    def _show(self, feed: Feed, reading: SlotReading | None) -> None:
        self._on_change(feed.show(reading))
