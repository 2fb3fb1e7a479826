"""Runs status on the server's event loop: messages that are read arrive there, and requests that
wait are woken there."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from threading import Event

from fastapi import FastAPI

from waybill_shared.contract.errors import Retryable
from waybill_shared.kafka.replies import Replies
from waybill_status.adapters.kafka.followers import Followers, Listeners
from waybill_status.adapters.redis import RedisSlots
from waybill_status.app.event_log import EventLog
from waybill_status.app.outcomes.hub import Hub
from waybill_status.app.outcomes.tokens import Tokens
from waybill_status.app.pipelines.events import Events
from waybill_status.app.pipelines.history import History
from waybill_status.app.watches.watchers import Watchers

logger = logging.getLogger(__name__)

PING_TIMEOUT_S = 5.0


@dataclass(slots=True, kw_only=True)
class Loop:
    """All that runs while status serves. `failed` says that the hub has failed: then the server
    ends."""

    slots: RedisSlots
    followers: Followers
    hub: Hub
    tokens: Tokens
    replies: Replies
    events: Events
    history: History
    watchers: Watchers
    log: EventLog
    failed: Event = field(default_factory=Event, init=False)
    _loop: asyncio.AbstractEventLoop | None = field(default=None, init=False)

    @asynccontextmanager
    async def run(self, app: FastAPI) -> AsyncIterator[None]:
        """Run for as long as `app` is served."""
        self._loop = asyncio.get_running_loop()
        listeners = Listeners(
            record=self.tokens.directory_changed.notify,
            reply=self.replies.take,
            event=self.events.take,
            watch=self.watchers.receive,
            delivery=self.watchers.receive_delivery,
            status_event=self.log.take,
        )
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self.slots.close)
            stack.enter_context(self.followers.notify(listeners))
            running = asyncio.create_task(self.hub.run())
            running.add_done_callback(self._note_end)
            await stack.enter_async_context(self.watchers.running())
            yield
            running.cancel()

    def close(self) -> None:
        """End requests that wait."""
        self.hub.close()
        self.replies.close()
        self.history.close()
        self.log.close()

    def check_redis(self) -> str | None:
        """Check that Redis answers. Called in a thread, because the client belongs to the event
        loop."""
        assert self._loop is not None
        asked = asyncio.run_coroutine_threadsafe(self.slots.ping(), self._loop)
        try:
            asked.result(PING_TIMEOUT_S)
        except (Retryable, TimeoutError) as error:
            return str(error) or "redis does not answer in time"
        return None

    def _note_end(self, running: asyncio.Task[None]) -> None:
        """Report that the hub has failed. No request would be woken any more, so a new process is
        better."""
        if not running.cancelled() and (fault := running.exception()) is not None:
            logger.critical("hub has died", exc_info=fault)
            self.failed.set()
