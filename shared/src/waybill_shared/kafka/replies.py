"""Answers to commands: follows their topic, remembers the newest, lets requests wait for them.
What checks have found takes most of the memory, and is forgotten first.

How old they are is not looked at: their times are by the clocks of runners, and the topic keeps an
hour.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace

from waybill_shared.contract.callers import Caller
from waybill_shared.contract.commands import COMMANDS
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.events import PipelineRecord, Reply
from waybill_shared.kafka.cluster import Kafka
from waybill_shared.kafka.follower import TopicFollower
from waybill_shared.process.signal import Signal

logger = logging.getLogger(__name__)

KEPT_MAX = 10_000  # some MB
RESULTS_BYTES_MAX = 32_000_000  # of what checks have found; each is 256 kB at most
RECORD_TIMEOUT_S = 5.0


class Replies:
    """Lives on the loop: `take`, `get` and `wait` are called there."""

    def __init__(self) -> None:
        self._by_id: OrderedDict[tuple[str, str], Reply] = OrderedDict()
        self._results: OrderedDict[tuple[str, str], int] = OrderedDict()
        """The lengths of the stored results, the oldest first."""
        self._results_bytes = 0
        self._changed = Signal()
        self._closing = False

    def take(self, reply: Reply) -> None:
        """Keep the answer. If the runner could not know that it was written, it has written it
        twice: the first one counts.
        """
        key = reply.tenant, reply.id
        if key in self._by_id:
            return
        self._by_id[key] = reply
        if reply.result is not None:
            self._results[key] = len(reply.result)
            self._results_bytes += len(reply.result)
        if len(self._by_id) > KEPT_MAX:
            oldest, _ = self._by_id.popitem(last=False)
            self._forget_result(oldest)
        while self._results_bytes > RESULTS_BYTES_MAX:
            oldest = next(iter(self._results))
            self._forget_result(oldest)
            self._by_id[oldest] = replace(self._by_id[oldest], result=None)
        self._changed.notify()

    def _forget_result(self, key: tuple[str, str]) -> None:
        self._results_bytes -= self._results.pop(key, 0)

    def get(self, caller: Caller, id: str) -> Reply | None:
        return self._by_id.get((caller.tenant, id))

    async def wait(self, caller: Caller, id: str, wait_s: float) -> Reply | None:
        """Wait for the answer and return it as soon as it is there; None when the time is over
        first.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + wait_s
        while (reply := self.get(caller, id)) is None and not self._closing:
            left_s = deadline - loop.time()
            if left_s <= 0:
                return None
            await self._changed.wait(left_s)
        return reply

    def close(self) -> None:
        """Let every waiting request answer what it knows."""
        self._closing = True
        self._changed.notify()


def follow_replies(
    kafka: Kafka,
    prefix: str,
    pipelines: TopicFollower[PipelineRecord],
    accept: Callable[[Reply], None],
    *,
    since_ms: int | None = None,
) -> TopicFollower[Reply]:
    """Follow the replies. A caller that has a reply may ask for the pipeline next.

    So before a reply is passed on, the follower of `pipelines` has read its record, which was
    written before it. A question has no record. `since_ms`: as of any follower.
    """

    def hear(reply: Reply) -> None:
        if replies.caught_up.is_set() and COMMANDS[reply.action].changes_record:
            try:
                pipelines.await_now(RECORD_TIMEOUT_S)
            except Retryable as error:
                logger.warning("a reply came before its record", extra={"reason": str(error)})
        accept(reply)

    replies = TopicFollower(kafka, f"{prefix}.replies", Reply, hear, since_ms=since_ms)
    return replies
