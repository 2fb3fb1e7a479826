"""Transactions in Kafka: what is written counts with its answer, or not at all.

Fulfils `Transactions`. Requests that wait at the same time share one transaction. A producer is
dropped after a transaction that was not committed, and its id is never used again. So an id that
was fenced stays fenced.
"""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import Final, TypeVar

from waybill_ingress.adapters.kafka.producer import FAILED, ProducerLog
from waybill_ingress.app.idempotency_ports import Aborted, NotDone
from waybill_ingress.app.ports import Appended, Log
from waybill_ingress.core.requests import Place
from waybill_ingress.core.rows import Record
from waybill_shared.contract.codec import encode
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.requests import RequestAnswer
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.transactions import (
    NothingCounts,
    TransactionalProducer,
    TransactionFailed,
    transactional_options,
)
from waybill_shared.process.failpoints import reach

logger = logging.getLogger(__name__)

# For so long readers of an input wait for an ingress that was killed in between.
TRANSACTION_TIMEOUT_S: Final = 15.0
DELIVERY_TIMEOUT_S: Final = 12.0
CLAIM_TIMEOUT_S: Final = 10.0
COMMIT_TIMEOUT_S: Final = 10.0
AT_ONCE: Final = 4
TOGETHER_MAX: Final = 100  # requests in one transaction
MESSAGE_BYTES_MAX: Final = 16_000_000  # an answer may name ten thousand refused records
UNSURE: Final = "it is not known whether it was written: send it again with the same key"
Action = Callable[[Log], Awaitable[RequestAnswer]]
T = TypeVar("T")


class KafkaTransactions:
    """The open producers with transactions. `options` are those of a producer of records."""

    def __init__(self, admin: KafkaAdmin, prefix: str, options: dict[str, object]) -> None:
        self._admin = admin
        self._prefix = prefix
        self._options = {
            **options,
            "message.max.bytes": MESSAGE_BYTES_MAX,
            "delivery.timeout.ms": int(DELIVERY_TIMEOUT_S * 1000),
        }
        self._process = secrets.token_hex(8)
        self._numbers = count(1)
        self._open: list[KafkaTransaction] = []
        self._opening: dict[bool, asyncio.Task[None]] = {}
        self._closing: set[asyncio.Task[None]] = set()
        # A pool of its own: waiting for a commit must not take its thread.
        self._threads = ThreadPoolExecutor(2 * AT_ONCE, thread_name_prefix="transactions")

    async def next(self, *, apart: bool = False) -> "KafkaTransaction":
        while True:
            self._throw_away()
            usable = [each for each in self._open if each.apart is apart and not each.over]
            least = min(usable, key=KafkaTransaction.load, default=None)
            if (least is None or least.load()) and len(usable) < (1 if apart else AT_ONCE):
                self._begin_one(apart)
            if least is not None:
                return least
            await asyncio.shield(self._opening[apart])

    async def close(self) -> None:
        for each in self._open:
            await asyncio.to_thread(each.close)
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _throw_away(self) -> None:
        for each in [each for each in self._open if each.over and not each.load()]:
            self._open.remove(each)
            closing = asyncio.create_task(asyncio.to_thread(each.close))
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    def _begin_one(self, apart: bool) -> None:
        if apart not in self._opening:
            opening = self._opening[apart] = asyncio.create_task(self._open_one(apart))
            opening.add_done_callback(lambda _: self._opening.pop(apart))

    async def _open_one(self, apart: bool) -> None:
        own = f"{self._prefix}/ingress/write/{self._process}/{next(self._numbers)}"
        topic = f"{self._prefix}.answers"
        opened = KafkaTransaction(
            self._admin, own, topic, self._options, self._threads, apart=apart
        )
        try:
            await opened.in_thread(opened.claim)
        except BaseException:
            await asyncio.to_thread(opened.close)
            raise
        self._open.append(opened)


@dataclass(eq=False, slots=True)
class _Member:
    """One request in a shared transaction. `touched`: it has written something."""

    action: Action
    done: "asyncio.Future[tuple[RequestAnswer, Place]]"
    touched: bool = False
    answer: RequestAnswer | None = None
    error: BaseException | None = None

    def succeed(self, place: Place) -> None:
        assert self.answer is not None
        if not self.done.done():  # else nobody waits any more
            self.done.set_result((self.answer, place))

    def fail(self, error: BaseException) -> None:
        """Report the error, unless a result was reported already."""
        if not self.done.done():
            self.done.set_exception(error)


class KafkaTransaction:
    """One producer, and its transactions one after the other. `apart`: for requests that may spoil
    it for others.
    """

    def __init__(
        self,
        admin: KafkaAdmin,
        id: str,
        topic: str,
        options: dict[str, object],
        threads: Executor,
        *,
        apart: bool = False,
    ) -> None:
        self.id = id
        self._threads = threads
        self.apart = apart
        self._over = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._topic = topic
        options = {**options, **transactional_options(id, TRANSACTION_TIMEOUT_S)}
        self._log = ProducerLog(admin.cluster, options, on_fatal=self._shut_out)
        self._log.__enter__()
        self._producer = TransactionalProducer(self._log.producer, id, admin.cluster.user)
        self._started = False
        self._waiting: list[_Member] = []
        self._working: asyncio.Task[None] | None = None

    @property
    def over(self) -> bool:
        return self._over.is_set()

    def load(self) -> int:
        """Return how many transactions a new request waits for."""
        return 0 if self._working is None else 1 + bool(self._waiting)

    def claim(self) -> None:
        try:
            self._producer.claim(CLAIM_TIMEOUT_S)
        except TransactionFailed as error:
            raise Retryable(f"no transaction can begin: {error}") from error

    def close(self) -> None:
        self._log.close()

    async def in_thread(self, work: Callable[[], T]) -> T:
        return await self._loop.run_in_executor(self._threads, work)

    async def carry_out(self, action: Action) -> tuple[RequestAnswer, Place]:
        if self.over:
            raise Aborted("the transaction is over; try again")
        member = _Member(action, asyncio.get_running_loop().create_future())
        self._waiting.append(member)
        if self._working is None:
            self._working = asyncio.create_task(self._work())
        return await member.done

    async def _work(self) -> None:
        try:
            while self._waiting and not self.over:
                members, self._waiting = self._waiting[:TOGETHER_MAX], self._waiting[TOGETHER_MAX:]
                await self._together(members)
        finally:
            self._working = None
            _fail(self._waiting, Aborted("the transaction is over; try again"))
            self._waiting = []

    async def _together(self, members: Sequence[_Member]) -> None:
        await asyncio.gather(*map(self._act, members))
        good = [member for member in members if member.error is None]
        try:
            if self.over:
                raise Aborted(FAILED)
            if good:
                places = await self._write_answers(good)
                await self.in_thread(self._commit)
                for member, place in zip(good, places, strict=True):
                    member.succeed(place)
        except Aborted as error:
            self._over.set()
            sure = await self.in_thread(self._abort)
            _fail(good, error if sure else NotDone(f"{UNSURE} ({error})"))
        except BaseException as error:
            self._over.set()
            _fail(good, NotDone(f"{UNSURE} ({error})"))
            if not isinstance(error, NotDone):
                logger.exception("a transaction has failed")
                raise
        finally:
            for member in members:
                member.fail(member.error or NotDone(UNSURE))

    async def _act(self, member: _Member) -> None:
        try:
            member.answer = await member.action(_MemberLog(self, member))
        except BaseException as error:  # noqa: BLE001 - whatever it is, the waiting request gets it
            member.error = error
            if member.touched:
                self._over.set()  # what others have sent with it may never be acknowledged

    async def _write_answers(self, members: Sequence[_Member]) -> list[Place]:
        """Write the answers, each under a key of its own, so that compaction deletes none."""
        writes = []
        for member in members:
            assert member.answer is not None
            record = Record(0, member.answer.claim.encode(), encode(member.answer))
            writes.append(self.append(self._topic, [record]))
        appended = await asyncio.gather(*writes)
        for each in appended:
            for failed in (*each.failed, *each.refused):
                raise Aborted(failed.reason)
        return [each.delivered[0] for each in appended]

    async def append(self, topic: str, records: Sequence[Record]) -> Appended:
        if not self._started:
            try:
                self._producer.begin()
            except TransactionFailed as error:
                raise Aborted(str(error)) from error
            self._started = True
        over = asyncio.create_task(self._over.wait())
        written = asyncio.create_task(self._log.append(topic, records, whole=True))
        await asyncio.wait((over, written), return_when=asyncio.FIRST_COMPLETED)
        if over.done():
            written.cancel()
            raise Aborted(FAILED)
        over.cancel()
        return written.result()

    def _commit(self) -> None:
        reach("request.before_commit")
        try:
            self._producer.commit(COMMIT_TIMEOUT_S)
        except NothingCounts as error:
            raise Aborted(str(error)) from error
        except TransactionFailed as error:
            raise NotDone(str(error)) from error
        self._started = False
        reach("request.after_commit")

    def _abort(self) -> bool:
        """Abort the transaction. Return True if it is known that nothing counts."""
        if not self._started:
            return True
        try:
            self._producer.abort(COMMIT_TIMEOUT_S)
        except TransactionFailed as error:
            logger.warning("a transaction is left to Kafka", extra={"reason": str(error)})
            return False
        return True

    def _shut_out(self) -> None:
        """Mark it as over. Called by a thread of the client."""
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._over.set)


class _MemberLog:
    def __init__(self, transaction: KafkaTransaction, member: _Member) -> None:
        self._transaction = transaction
        self._member = member

    async def append(self, topic: str, records: Sequence[Record]) -> Appended:
        self._member.touched = True
        return await self._transaction.append(topic, records)


def _fail(members: Sequence[_Member], error: NotDone) -> None:
    for member in members:
        member.fail(type(error)(str(error)))  # each gets its own: raising an error changes it
