"""Follows replies to commands in a thread, and gives them to the event loop. Fulfils `Answers`.

Each process follows all of them, without a consumer group. So the process that accepted a command
receives its reply.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from fastapi import FastAPI

from waybill_shared.contract.callers import Caller
from waybill_shared.contract.events import PipelineRecord, Reply
from waybill_shared.contract.operations import OperationId
from waybill_shared.kafka.cluster import Kafka
from waybill_shared.kafka.follower import TopicFollower
from waybill_shared.kafka.replies import Replies, follow_replies


class FollowedAnswers:
    """The replies since `since_ms`: nobody waits here for older ones.

    `accept` is called with each, on the event loop, before those that wait for it.
    """

    def __init__(
        self,
        kafka: Kafka,
        prefix: str,
        pipelines: TopicFollower[PipelineRecord],
        accept: Callable[[Reply], None],
        *,
        since_ms: int,
    ) -> None:
        self._follower = follow_replies(kafka, prefix, pipelines, self._receive, since_ms=since_ms)
        self._accept = accept
        self._replies = Replies()
        self._loop: asyncio.AbstractEventLoop | None = None

    @asynccontextmanager
    async def run(self, app: FastAPI) -> AsyncIterator[None]:
        """Follow the replies while `app` is served."""
        self._loop = asyncio.get_running_loop()
        with self._follower:
            yield

    async def within(self, caller: Caller, operation: OperationId, wait_s: float) -> Reply | None:
        if self.check() is not None:
            return None
        return await self._replies.wait(caller, str(operation), wait_s)

    def check(self) -> str | None:
        """Return None if what was answered a moment ago is known here."""
        return self._follower.check()

    def close(self) -> None:
        """End the requests that wait."""
        self._replies.close()

    def _receive(self, reply: Reply) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._take, reply)

    def _take(self, reply: Reply) -> None:
        self._accept(reply)
        self._replies.take(reply)
