"""The parts of status put together, and their life on the server's loop. Takes no decisions."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

from fastapi import FastAPI

from waybill_shared.access.authentication import KeysInForce
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.events import LifecycleEvent, PipelineRecord, Reply
from waybill_shared.contract.pipelines import PipelineDirectory
from waybill_shared.contract.slots import Keys
from waybill_shared.contract.tokens import KeyRing
from waybill_shared.http.app import create_app
from waybill_shared.kafka.follower import TopicFollower
from waybill_shared.kafka.news import News
from waybill_shared.process.clock import SystemClock
from waybill_shared.process.health import Health
from waybill_status.adapters.http import add_limits, operations_router, tokens_router
from waybill_status.adapters.pipelines_http import events_router, pipelines_router
from waybill_status.adapters.redis import RedisSlots
from waybill_status.app.events import KEPT_MS, Events
from waybill_status.app.hub import Hub
from waybill_status.app.operations import Replies
from waybill_status.app.pipelines import Pipelines
from waybill_status.app.tokens import Tokens
from waybill_status.settings import Settings

logger = logging.getLogger(__name__)

PING_TIMEOUT_S = 5.0
RECORD_TIMEOUT_S = 5.0


class Service:
    """`app` to serve; `close` ends held requests; `failed` says why a part of it has died."""

    def __init__(
        self,
        settings: Settings,
        ring: KeyRing,
        keys: KeysInForce | None,
        *,
        on_fault: Callable[[], None],
    ) -> None:
        self.failed: BaseException | None = None
        self._settings = settings
        self._on_fault = on_fault
        timeout_s = settings.status_redis_timeout_s
        self._redis = settings.redis_server().async_client(timeout_s=timeout_s)
        kafka = settings.kafka_cluster()
        clock = SystemClock()
        self._slots = RedisSlots(self._redis, Keys(settings.topic_prefix))
        self._hub = Hub(self._slots, waiters_max=settings.status_waiters_max)
        self._replies = Replies()
        self._events = Events(streams_max=settings.status_waiters_max)
        self._directory = PipelineDirectory()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pipelines = TopicFollower(
            kafka, settings.topic("pipelines"), PipelineRecord, self._accept_record
        )
        self._news = News(self._pipelines)
        self._answers = TopicFollower(kafka, settings.topic("replies"), Reply, self._accept_reply)
        self._lifecycle = TopicFollower(
            kafka,
            settings.topic("lifecycle"),
            LifecycleEvent,
            self._accept_event,
            since_ms=clock.now_ms() - KEPT_MS,
        )
        self._tokens = Tokens(owners=self, store=self._slots, hub=self._hub, ring=ring, clock=clock)
        pipelines = Pipelines(self._directory, self._slots)
        routers = [
            tokens_router(self._tokens, query_bytes_max=settings.status_query_bytes_max),
            pipelines_router(pipelines),
            events_router(pipelines, self._events, caught_up=self._lifecycle.caught_up.is_set),
            operations_router(self._replies),
        ]
        checks = {
            "pipelines": self._pipelines.check,
            "replies": self._answers.check,
            "redis": self._check_redis,
        }
        self.app = create_app("status", routers, Health(checks=checks), self._lifespan, keys)
        add_limits(self.app)

    def close(self) -> None:
        self._hub.close()
        self._replies.close()
        self._events.close()

    def owner_of(self, short_id: str) -> PipelineRecord | None:
        return self._directory.owner_of(short_id)

    async def heard(self) -> bool:
        return await self._news.heard()

    @asynccontextmanager
    async def _lifespan(self, app: FastAPI) -> AsyncIterator[None]:
        self._loop = asyncio.get_running_loop()
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._redis.aclose)
            stack.enter_context(self._pipelines)
            stack.enter_context(self._answers)
            stack.enter_context(self._lifecycle)
            running = asyncio.create_task(self._hub.run())
            running.add_done_callback(self._ended)
            yield
            running.cancel()

    def _ended(self, running: asyncio.Task[None]) -> None:
        """Nobody would be woken any more: better a new process."""
        if not running.cancelled() and (fault := running.exception()) is not None:
            logger.critical("hub has died", exc_info=fault)
            self.failed = fault
            self._on_fault()

    def _accept_record(self, record: PipelineRecord) -> None:
        self._directory.accept(record)
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._tokens.directory_changed.notify)

    def _accept_event(self, event: LifecycleEvent) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._events.take, event)

    def _accept_reply(self, reply: Reply) -> None:
        """Whoever hears it may ask for the pipeline next, whose record came before it."""
        if self._answers.caught_up.is_set():
            try:
                self._pipelines.await_now(RECORD_TIMEOUT_S)
            except Retryable as error:
                logger.warning("a reply came before its record", extra={"reason": str(error)})
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._replies.take, reply)

    def _check_redis(self) -> str | None:
        """Called in a thread: the client lives on the loop."""
        assert self._loop is not None
        asked = asyncio.run_coroutine_threadsafe(self._slots.ping(), self._loop)
        try:
            asked.result(PING_TIMEOUT_S)
        except (Retryable, TimeoutError) as error:
            return str(error) or "redis does not answer in time"
        return None
