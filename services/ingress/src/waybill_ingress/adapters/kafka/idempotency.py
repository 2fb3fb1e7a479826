"""The log of claims and answers in Kafka, followed in threads. Fulfils `RequestLog`.

Claims are written outside of transactions, so that none of them waits for the end of one. Answers
are in the transactions of what was written.
"""

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager
from typing import Final, TypeVar

from confluent_kafka import KafkaException

from waybill_ingress.adapters.kafka.producer import ProducerLog
from waybill_ingress.adapters.kafka.transactions import CLAIM_TIMEOUT_S
from waybill_ingress.core.requests import OwnedKey, Place, Requests
from waybill_ingress.core.rows import Record
from waybill_shared.contract.codec import decode, encode
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.requests import RequestAnswer, RequestClaim
from waybill_shared.contract.topics import topic_specs
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.clients import claim_transactions, make_producer, read_ranges
from waybill_shared.kafka.errors import explain
from waybill_shared.kafka.follower import FETCH_WAIT_MS, PlacedFollower, TopicFollower
from waybill_shared.kafka.majority import highest_ends
from waybill_shared.kafka.partitioner import partition_of
from waybill_shared.process.clock import Clock

READ_TIMEOUT_S: Final = 30.0  # longer than a transaction may be open; the broker checks every 10
PARTITIONS: Final = {spec.name: spec.partitions for spec in topic_specs()}
THREADS: Final = 4
ANSWER_LAG_S: Final = 0.5  # an answer of another process is known here after a tenth of that
LOOK_S: Final = 0.01
RECENT_MAX: Final = 1_000
RECENT_BYTES_MAX: Final = 10_000
"""Answers are repeated soon or never: so many small ones are kept, and not read again."""

A = TypeVar("A")
T = TypeVar("T")


class KafkaRequestLog:
    def __init__(
        self, admin: KafkaAdmin, prefix: str, log: ProducerLog, requests: Requests, clock: Clock
    ) -> None:
        self._admin = admin
        self._prefix = prefix
        self._log = log
        self._requests = requests
        self._clock = clock
        self._lock = threading.Lock()
        self._recent: OrderedDict[str, RequestAnswer] = OrderedDict()
        # A pool of its own: commits, which these may wait for, need threads too.
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="requests")
        self._waiting: dict[tuple[str, bool], asyncio.Future[None]] = {}
        self._settling: dict[str, asyncio.Task[None]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        kafka = admin.cluster
        self._claims = TopicFollower(kafka, f"{prefix}.requests", RequestClaim, self._take)
        self._answers = PlacedFollower(
            kafka, f"{prefix}.answers", RequestAnswer, self.note, fetch_wait_ms=FETCH_WAIT_MS
        )

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        self._loop = asyncio.get_running_loop()
        with ExitStack() as stack:
            stack.enter_context(self._claims)
            stack.enter_context(self._answers)
            yield
            self._threads.shutdown(wait=False, cancel_futures=True)

    def check(self) -> str | None:
        """Return None if both topics are read, else the reason. For /readyz."""
        return self._claims.check() or self._answers.check()

    def owner(self, who: str) -> OwnedKey | None:
        if not (self._claims.caught_up.is_set() and self._answers.caught_up.is_set()):
            raise Retryable("this ingress still reads which keys were used: try again in a moment")
        with self._lock:
            return self._requests.owner(who, self._clock.now_ms())

    async def await_owner(self, who: str, before: OwnedKey) -> OwnedKey | None:
        """Look again and again, because threads read the topics."""
        known, ends_at_s = self.owner(who), time.monotonic() + ANSWER_LAG_S
        while known is not None and known.id == before.id and known.place is None:
            if time.monotonic() >= ends_at_s:
                break
            await asyncio.sleep(LOOK_S)
            known = self.owner(who)
        return known

    def forgets_before(self) -> int:
        with self._lock:
            return self._requests.forgets_before(self._clock.now_ms())

    async def claim(self, claim: RequestClaim) -> OwnedKey | None:
        topic, key = f"{self._prefix}.requests", f"{claim.who}/{claim.id}"
        if claim.released:
            key += "/released"
        read = self._waiting[claim.id, claim.released] = asyncio.get_running_loop().create_future()
        partition = partition_of(claim.who, PARTITIONS["requests"])
        try:
            record = Record(0, key.encode(), encode(claim))
            appended = await self._log.append(topic, [record], partition=partition)
            for failed in (*appended.failed, *appended.refused):
                raise Retryable(f"topic {topic}: {failed.reason}")
            async with asyncio.timeout(READ_TIMEOUT_S):
                await read
        except TimeoutError as error:
            raise Retryable(f"topic {topic} is not read in time") from error
        finally:
            del self._waiting[claim.id, claim.released]
        return self.owner(claim.who)

    async def settle(self, owned: OwnedKey) -> None:
        fenced = owned.transactional_id
        settling = self._settling.get(fenced)
        if settling is None:
            settling = self._settling[fenced] = asyncio.create_task(self._settle(fenced))
            settling.add_done_callback(lambda _: self._settling.pop(fenced))
        await asyncio.shield(settling)

    async def answer(self, owned: OwnedKey) -> RequestAnswer:
        """Return the answer of the claim. Raises Retryable.

        A broker may report a wrong position: only a record with this claim is its answer.
        """
        with self._lock:
            recent = self._recent.get(owned.id)
        if recent is not None:
            return recent
        assert owned.place is not None
        found = await self._in_thread(self._read, owned.place)
        if found.claim != owned.id:
            raise Retryable("the answer is not read yet: try again in a moment")
        return found

    def note(self, answer: RequestAnswer, place: Place) -> None:
        with self._lock:
            self._requests.note_answer(answer, place)
            if answer.status and len(answer.body) <= RECENT_BYTES_MAX:
                self._recent[answer.claim] = answer
                if len(self._recent) > RECENT_MAX:
                    self._recent.popitem(last=False)

    def _take(self, claim: RequestClaim) -> None:
        with self._lock:
            self._requests.take(claim, self._clock.now_ms())
        read = self._waiting.get((claim.id, claim.released))
        if read is not None:
            assert self._loop is not None
            self._loop.call_soon_threadsafe(_finish, read)

    async def _settle(self, id: str) -> None:
        await self._in_thread(self._shut_out, id)
        await self._in_thread(self._read_answers, None)

    async def _in_thread(self, work: Callable[[A], T], argument: A) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, argument)

    def _shut_out(self, id: str) -> None:
        producer = make_producer(self._admin.cluster, **{"transactional.id": id})
        try:
            claim_transactions(producer, CLAIM_TIMEOUT_S)
        except KafkaException as error:
            raise Retryable(
                f"the owner of a request cannot be fenced: {explain(error.args[0])}"
            ) from error

    def _read_answers(self, _: None) -> None:
        topic = f"{self._prefix}.answers"
        ends, _client = highest_ends(self._admin, topic, range(PARTITIONS["answers"]))
        self._answers.await_ends(ends, READ_TIMEOUT_S)

    def _read(self, place: Place) -> RequestAnswer:
        if place[1] < 0:
            raise Retryable("it is not known yet where the answer is: try again in a moment")
        (partition, offset), topic = place, f"{self._prefix}.answers"
        for message in read_ranges(self._admin.cluster, topic, {partition: (offset, offset + 1)}):
            return decode(RequestAnswer, message.value() or b"")
        raise Retryable(f"topic {topic} does not hold the answer any more")


def _finish(read: "asyncio.Future[None]") -> None:
    if not read.done():
        read.set_result(None)
