"""Kafka for the use cases: `Log` is one idempotent producer, `Topics` the admin client.

A record that is not acknowledged is reported to its own request. It is not retried here, because
the producer has done that already.
"""

import asyncio
import logging
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from waybill_ingress.app.idempotency_ports import Aborted
from waybill_ingress.app.ports import Appended
from waybill_ingress.core.rows import Record, Rejection
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.admin_answers import TopicIdentity, identities
from waybill_shared.kafka.clients import make_producer
from waybill_shared.kafka.cluster import Kafka
from waybill_shared.kafka.errors import FOR_ANOTHER, SPOILT, explain
from waybill_shared.kafka.topics import add_partitions

logger = logging.getLogger(__name__)

BY_KEY = -1
POLL_S = 0.1
FLUSH_TIMEOUT_S = 5.0
PING_TIMEOUT_S = 2.0
REFUSED = "the topic is compacted and the record has no key, or it breaks another of its rules"
FAILED = "a request in the same transaction has failed, or the producer is fenced; try again"
QUEUE_FULL = "the queue of this service is full, send again later"


class ProducerLog:
    """One producer for all requests, and the thread that reads its delivery reports."""

    def __init__(
        self, kafka: Kafka, options: dict[str, object], on_fatal: Callable[[], None]
    ) -> None:
        self._on_fatal = on_fatal
        own = weakref.ref(self)  # else a producer that was dropped would keep its threads

        def on_error(error: KafkaError) -> None:
            if (log := own()) is not None:
                log.handle(error)

        options = {**options, "error_cb": on_error, "logger": logger}
        self.producer: Producer = make_producer(kafka, **options)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._poll, name="delivery reports", daemon=True)

    def __enter__(self) -> "ProducerLog":
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        self._thread.join()
        self.producer.flush(FLUSH_TIMEOUT_S)

    def close(self) -> None:
        """Close the client with all that it has; nothing may be asked of it after that."""
        self.__exit__()
        del self.producer

    async def append(
        self,
        topic: str,
        records: Sequence[Record],
        *,
        partition: int = BY_KEY,
        whole: bool = False,
    ) -> Appended:
        """Write the records and return what became of them.

        `whole`: all or nothing. It returns at the first failure, because other reports may never
        come after that. Raises Aborted if none of these records is at fault.
        """
        reports = _Reports(asyncio.get_running_loop(), whole=whole)
        unsent: list[Rejection] = []
        at_fault = False
        produce = self.producer.produce
        for index, key, value in records:
            try:
                produce(topic, value, key, partition, on_delivery=partial(reports.take, index))
            except BufferError:
                unsent.append(_reject(index, QUEUE_FULL))
                at_fault = True
            except KafkaException as error:
                unsent.append(_reject(index, explain(error.args[0])))
                at_fault |= error.args[0].code() not in SPOILT
        if not (whole and at_fault):
            await reports.wait(len(records) - len(unsent))
        if whole and (unsent or reports.failed) and not (at_fault or reports.decided):
            raise Aborted(FAILED)
        return Appended(
            delivered=reports.delivered,
            failed=[*unsent, *reports.failed],
            refused=reports.refused,
        )

    def check(self) -> str | None:
        """Return None if a broker answers, else the reason. For /readyz."""
        try:
            self.producer.list_topics(timeout=PING_TIMEOUT_S)
        except KafkaException as error:
            return f"kafka does not answer: {error.args[0].str()}"
        return None

    def _poll(self) -> None:
        while not self._stop.is_set():
            try:
                self.producer.poll(POLL_S)
            except KafkaException as error:  # this client raises fatal errors here
                self.handle(error.args[0])

    def handle(self, error: KafkaError) -> None:
        """Handle an error that the client reports of itself."""
        if error.fatal():  # an idempotent producer never recovers from these
            logger.error("producer failed for good", extra={"reason": error.str()})
            self._on_fatal()


class _Reports:
    """The delivery reports of one request. Its event loop gets all of them at once."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *, whole: bool) -> None:
        self._loop = loop
        self._whole = whole
        self.decided = False
        """True if a record has failed for a reason of its own."""
        self._done: asyncio.Future[None] = loop.create_future()
        self.delivered: list[tuple[int, int]] = []
        self.failed: list[Rejection] = []
        self.refused: list[Rejection] = []
        self._reported = 0
        self._expected = -1

    def take(self, index: int, error: KafkaError | None, message: Message) -> None:
        """Note a report. Called only in the thread that polls."""
        if error is None:
            partition, offset = message.partition(), message.offset()
            assert partition is not None
            self.delivered.append((partition, -1 if offset is None else offset))
        elif error.code() == KafkaError.INVALID_RECORD:
            self.refused.append(Rejection(index, f"refused by kafka: {REFUSED}"))
        elif error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
            self.refused.append(Rejection(index, f"refused by kafka: {explain(error)}"))
        else:
            self.failed.append(_reject(index, explain(error)))
        self._reported += 1
        self.decided |= error is not None and error.code() not in FOR_ANOTHER
        if self._reported == self._expected or (self._whole and self.decided):
            with suppress(RuntimeError):  # the loop has ended: nobody waits any more
                self._loop.call_soon_threadsafe(self._finish)

    async def wait(self, expected: int) -> None:
        # The last report may come before or after this line: then one of the two sides sees it.
        self._expected = expected
        if self._reported == expected or (self._whole and self.decided):
            self._finish()
        await self._done

    def _finish(self) -> None:
        if not self._done.done():
            self._done.set_result(None)


class AdminTopics:
    """Questions about topics. Those that wait at the same time share one request."""

    def __init__(self, admin: KafkaAdmin) -> None:
        self._admin = admin
        self._seen: dict[str, TopicIdentity | None] = {}
        self._wanted: set[str] = set()
        self._next: asyncio.Future[dict[str, TopicIdentity]] | None = None
        self._asking: asyncio.Task[None] | None = None

    def last_seen(self, topic: str) -> TopicIdentity | None:
        return self._seen.get(topic)

    async def describe(self, topic: str) -> TopicIdentity | None:
        """Return the identity of the topic. A request that is under way started too early for this
        caller, so it joins the next one.
        """
        self._wanted.add(topic)
        if self._next is None:
            self._next = asyncio.get_running_loop().create_future()
        answer = self._next
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask())
        return (await asyncio.shield(answer)).get(topic)

    async def cluster_id(self) -> str:
        return await asyncio.to_thread(self._admin.cluster_id)

    async def starts(self, topic: str, partitions: Iterable[int]) -> dict[int, int]:
        return await asyncio.to_thread(self._admin.starts, topic, list(partitions))

    async def ends(self, topic: str, partitions: Iterable[int]) -> dict[int, int]:
        return await asyncio.to_thread(self._admin.ends, topic, list(partitions))

    async def add_partitions(self, topic: str, partitions: int) -> None:
        await asyncio.to_thread(add_partitions, self._admin, topic, partitions)

    async def _ask(self) -> None:
        while self._next is not None:
            wanted, answer = self._wanted, self._next
            self._wanted, self._next = set(), None
            found = await asyncio.gather(self._identify(wanted), return_exceptions=True)
            if isinstance(found[0], BaseException):
                answer.set_exception(found[0])
            else:
                self._seen.update({topic: found[0].get(topic) for topic in wanted})
                answer.set_result(found[0])
        self._asking = None

    async def _identify(self, topics: set[str]) -> dict[str, TopicIdentity]:
        asked = self._admin.ask_identities(topics)
        answers = map(asyncio.wrap_future, asked.values())
        await asyncio.gather(*answers, return_exceptions=True)
        return identities(asked)


def _reject(index: int, reason: str) -> Rejection:
    return Rejection(index, f"not acknowledged by kafka: {reason}")
