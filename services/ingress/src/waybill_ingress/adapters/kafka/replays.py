"""Writes what is to be replayed in exclusive transactions. Fulfils `ReplayLog`."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final
from weakref import WeakValueDictionary

from waybill_ingress.adapters.kafka.exclusive_transaction import (
    ExclusiveTransaction,
    TransactionPurpose,
    exclusive_transaction,
)
from waybill_shared.contract.events import pipeline_key
from waybill_shared.contract.replays import LetterReplay, Replay, ReplayMessage, ReplayPosition
from waybill_shared.kafka.admin import KafkaAdmin

AT_ONCE: Final = 2  # in this process: each has threads that wait for Kafka
FENCED_BY_ANOTHER: Final = "another request replays dead letters of this pipeline at this moment"
UNSURE: Final = (
    "it is not known whether it is done: ask for the same again, without `again`, to find out"
)


class KafkaReplays:
    def __init__(self, kafka: KafkaAdmin, prefix: str) -> None:
        self._admin = kafka
        self._prefix = prefix
        self._permits = asyncio.Semaphore(AT_ONCE)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def transaction(
        self, tenant: str, pipeline_uid: str
    ) -> AsyncIterator["KafkaReplayTransaction"]:
        """Get the exclusive right for the pipeline. Requests of this process wait for each other;
        none is fenced.
        """
        key = pipeline_key(tenant, pipeline_uid)
        lock = self._locks.setdefault(key, asyncio.Lock())
        what = TransactionPurpose(
            id=f"{self._prefix}/ingress/replay/{key}",
            topic=f"{self._prefix}.replays",
            key=key,
            kind=ReplayMessage,
            place=f"{pipeline_uid}.replay",
            fenced=FENCED_BY_ANOTHER,
            unsure=UNSURE,
        )
        async with lock, self._permits, exclusive_transaction(self._admin, what) as transaction:
            yield KafkaReplayTransaction(transaction)


class KafkaReplayTransaction:
    """One such transaction. Fulfils `ReplayTransaction`."""

    def __init__(self, transaction: ExclusiveTransaction[ReplayMessage]) -> None:
        self._transaction = transaction

    async def read(self) -> Sequence[Replay]:
        bodies = [message.body for message in await self._transaction.read()]
        return [body for body in bodies if isinstance(body, Replay)]

    async def conclude(self, answer: Replay) -> None:
        await self._transaction.conclude(ReplayMessage(body=answer))

    async def send(self, letters: Sequence[LetterReplay]) -> Sequence[ReplayPosition]:
        """Write these, and return where each is. Raise Retryable if their topic may be another than
        the one that the positions name.
        """
        transaction = self._transaction
        messages = [transaction.message(ReplayMessage(body=each)) for each in letters]
        places = await transaction.send(messages)
        await asyncio.to_thread(transaction.check_topic)
        return [
            ReplayPosition(topic_id=transaction.topic_id, partition=partition, offset=offset)
            for partition, offset in places
        ]
