"""Before an answer says that there is no such thing, this process reads what others have
written.
"""

import asyncio
import logging
import threading
from typing import Protocol

from waybill_shared.contract.errors import Retryable

logger = logging.getLogger(__name__)

NEWS_TIMEOUT_S = 2.0  # that a request waits: milliseconds, up to 0.5 s after a transaction


class Follower(Protocol):
    """A `TopicFollower` of any message."""

    caught_up: threading.Event

    def await_now(self, timeout_s: float) -> None: ...


class News:
    """Lets requests wait until a follower has read what was written before they arrived.

    Those that wait at the same time share one question to Kafka, so questions for unknown names
    cost no more than that.
    """

    def __init__(self, follower: Follower) -> None:
        self._follower = follower
        self._next: asyncio.Future[bool] | None = None
        self._asking: asyncio.Task[None] | None = None

    def has_caught_up(self) -> bool:
        """Return True if all is known that was written before this process started."""
        return self._follower.caught_up.is_set()

    async def catch_up(self) -> bool:
        """Wait for it; False when that takes too long, and then there may be more."""
        if self._next is None:  # a question under way began too early for this caller
            self._next = asyncio.get_running_loop().create_future()
        answer = self._next
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask())
        return await asyncio.shield(answer)

    async def _ask(self) -> None:
        while self._next is not None:
            answer, self._next = self._next, None
            try:
                answer.set_result(await asyncio.to_thread(self._await_now))
            except Exception as error:  # noqa: BLE001 - whatever it was, those who wait get it
                answer.set_exception(error)
        self._asking = None

    def _await_now(self) -> bool:
        try:
            self._follower.await_now(NEWS_TIMEOUT_S)
        except Retryable as error:
            logger.warning("news are late", extra={"reason": str(error)})
            return False
        return True


class AllNews:
    """The news of several topics as one."""

    def __init__(self, *news: News) -> None:
        self._news = news

    def has_caught_up(self) -> bool:
        return all(each.has_caught_up() for each in self._news)

    async def catch_up(self) -> bool:
        return all(await asyncio.gather(*(each.catch_up() for each in self._news)))
