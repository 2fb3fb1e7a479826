"""Sends dead letters to their topics again in exclusive transactions. Fulfils `ReplayLog`."""

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
from waybill_ingress.core.dead_letters import Resent
from waybill_shared.contract.events import pipeline_key
from waybill_shared.contract.replays import Replay
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.transactions import Outgoing

AT_ONCE: Final = 2  # in this process: each has threads that wait for Kafka
FENCED_BY_ANOTHER: Final = "another request replays dead letters of this pipeline at this moment"
UNSURE: Final = (
    "it is not known whether they were sent: ask for the same again, without `again`, to find out"
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
            kind=Replay,
            place=f"{pipeline_uid}.replay",
            fenced=FENCED_BY_ANOTHER,
            unsure=UNSURE,
        )
        async with lock, self._permits, exclusive_transaction(self._admin, what) as transaction:
            yield KafkaReplayTransaction(transaction)


class KafkaReplayTransaction:
    """One such transaction. Fulfils `ReplayTransaction`."""

    def __init__(self, transaction: ExclusiveTransaction[Replay]) -> None:
        self.read = transaction.read
        self.conclude = transaction.conclude
        self._transaction = transaction

    async def send(self, records: Sequence[Resent]) -> Sequence[tuple[int, int]]:
        return await self._transaction.send(
            [
                Outgoing(
                    topic=each.topic,
                    partition=each.partition,
                    key=each.key,
                    value=each.value,
                    headers=each.headers,
                )
                for each in records
            ]
        )
