"""Waits for the open watches of one partition, and reports them when their tokens are final."""

import asyncio
import heapq
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Final

from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.watches import TokenWatch
from waybill_shared.contract.words import WatchEnd
from waybill_shared.process.signal import loop_time_s
from waybill_shared.topic_views.watches import WatchBook
from waybill_status.app.measuring import count_ended
from waybill_status.app.outcomes.question import SharedQuestion
from waybill_status.app.ports import News, WatchReport, WatchWriter
from waybill_status.app.watches.watch_judge import WatchJudge

logger = logging.getLogger(__name__)

TICK_S: Final = 1.0  # between two checks of what has expired
LATE_S: Final = 5.0  # before a watch that could not be asked for is tried again
RETRY_S: Final = 1.0
TOGETHER_MAX: Final = 500  # watches that are reported in one transaction
TOGETHER_BYTES: Final = 4_000_000
AT_ONCE: Final = 20  # started in a row before other tasks run


@dataclass(slots=True)
class _Open:
    watch: TokenWatch
    question: SharedQuestion | None = None
    end: WatchEnd | None = None
    since: int = 0
    late: bool = False
    """True if this process could not ask for it at first."""


class OpenWatches:
    """The open watches of one partition; used on the event loop only."""

    def __init__(self, judge: WatchJudge, book: WatchBook, news: News) -> None:
        self._judge = judge
        self._book = book
        self._news = news
        self._open: dict[str, _Open] = {}
        self._fresh: list[str] = []
        self._late: list[str] = []
        self._together = TOGETHER_MAX
        self._reported: set[str] = set()
        """Watches that were reported, until that is read from Kafka."""
        self._due: dict[str, _Open] = {}
        self._expiring: list[tuple[int, str]] = []
        self._changed = asyncio.Event()
        self._started = asyncio.Event()

    def receive(self, watch: TokenWatch) -> None:
        if not watch.open:
            self._reported.discard(watch.id)
            self._forget(watch.id)
        elif watch.id not in self._open and watch.id not in self._reported:
            self._open[watch.id] = _Open(watch)
            self._fresh.append(watch.id)
            heapq.heappush(self._expiring, (watch.expires_at, watch.id))
            if len(self._expiring) > 2 * len(self._open) + TOGETHER_MAX:  # most are done
                self._expiring = [
                    (each.watch.expires_at, name) for name, each in self._open.items()
                ]
                heapq.heapify(self._expiring)
            self._started.set()

    @property
    def count(self) -> int:
        return len(self._open)

    def due_since(self) -> list[int]:
        return [each.since for each in self._due.values()]

    async def begin_all(self) -> None:
        """Ask for each watch, and again for those that this process cannot ask for yet."""
        retry_at = 0.0
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(TICK_S):
                    await self._started.wait()
            self._started.clear()
            self._expire()
            if (now := loop_time_s()) >= retry_at:
                self._fresh += self._late
                self._late, retry_at = [], now + LATE_S
            fresh, self._fresh = self._fresh, []
            for number, each in enumerate(fresh):
                if (found := self._open.get(each)) is not None and found.question is None:
                    await self._begin(found)
                if number % AT_ONCE == 0:
                    await asyncio.sleep(0)

    async def report_all(self, writer: WatchWriter) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            while self._due:
                await self._report(writer, [*islice(self._due.values(), self._together)])

    def end(self) -> None:
        for each in [*self._open]:
            self._forget(each)

    async def _begin(self, found: _Open) -> None:
        watch = found.watch
        begun = await self._judge.attend(watch, lambda: self._final(watch.id))
        if begun is None:
            if not found.late:
                logger.warning("a watch cannot be asked for here yet", extra={"watch": watch.id})
            found.late = True
            self._late.append(watch.id)
        elif isinstance(begun, WatchEnd):
            self._is_due(found, begun)
        elif self._open.get(watch.id) is found:
            found.question = begun
        else:  # it was closed meanwhile
            self._judge.dismiss(watch, begun)

    def _final(self, id: str) -> None:
        found = self._open.get(id)
        if found is None:
            return
        question = found.question
        change = None if question is None else question.change
        if change is not None and change.outcome.final:
            self._is_due(found, WatchEnd(change.outcome.outcome))
        else:
            logger.error("the question of a watch has failed", extra={"watch": id})
            self._release(found)
            self._late.append(id)

    def _expire(self) -> None:
        now_ms = self._judge.now_ms()
        while self._expiring and self._expiring[0][0] < now_ms:
            found = self._open.get(heapq.heappop(self._expiring)[1])
            if found is not None and found.end is None:
                self._is_due(found, WatchEnd.EXPIRED)

    def _is_due(self, found: _Open, end: WatchEnd) -> None:
        found.end, found.since = end, self._judge.now_ms()
        self._due[found.watch.id] = found
        self._changed.set()

    async def _report(self, writer: WatchWriter, due: Sequence[_Open]) -> None:
        """Report as many as fit in one transaction. After a failure fewer are written at once, so
        that one that Kafka refuses does not block the others."""
        reports: list[WatchReport] = []
        size = 0
        for each in due:
            if not self._book.is_open(each.watch.id):
                self._forget(each.watch.id)
            elif size < TOGETHER_BYTES:
                report = await self._report_of(each)
                reports.append(report)
                size += report.size
        if not reports:
            return
        ids = {report.watch.id for report in reports}
        self._reported |= ids
        try:
            await writer.report(reports)
        except Retryable as error:
            logger.warning("watches are not reported now", extra={"reason": str(error)})
            self._reported -= ids
            self._together = max(1, len(reports) // 2)
            first = reports[0].watch.id
            self._due[first] = self._due.pop(first)  # others go first: this one may be the cause
            await self._find_out(writer)
            return
        self._together = TOGETHER_MAX
        for report in reports:
            assert report.watch.ended_as is not None
            count_ended(report.watch.ended_as)
            self._forget(report.watch.id)

    async def _find_out(self, writer: WatchWriter) -> None:
        """Wait until it is known which reports count. Those are in the book, and are forgotten
        here."""
        while True:
            await asyncio.sleep(RETRY_S)
            with suppress(Retryable):
                await writer.finish()
                if await self._news.catch_up():
                    break
        for each in [*self._due.values()]:
            if not self._book.is_open(each.watch.id):
                self._forget(each.watch.id)

    async def _report_of(self, found: _Open) -> WatchReport:
        assert found.end is not None
        outcome = None
        if found.question is not None and found.end != WatchEnd.EXPIRED:
            outcome = await self._judge.outcome_of(found.question)
        return self._judge.report_of(found.watch, found.end, outcome)

    def _forget(self, id: str) -> None:
        self._due.pop(id, None)
        if (found := self._open.pop(id, None)) is not None:
            self._release(found)

    def _release(self, found: _Open) -> None:
        if found.question is not None:
            self._judge.dismiss(found.watch, found.question)
            found.question = None
