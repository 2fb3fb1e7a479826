"""Writes rows of files and their progress in exclusive transactions. Fulfils `ConnectorLog`."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

from waybill_ingress.adapters.kafka.exclusive_transaction import (
    ExclusiveTransaction,
    TransactionPurpose,
    exclusive_transaction,
)
from waybill_ingress.core.connectors.rows import DeadRow
from waybill_ingress.core.rows import Record
from waybill_shared.contract import dead_letters as named
from waybill_shared.contract.connectors import ConnectorProgress
from waybill_shared.contract.dead_letters import Headers
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.words import DeadReason
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.transactions import Outgoing
from waybill_shared.process.clock import Clock

FENCED_BY_ANOTHER: Final = "another ingress fetches this file at this moment"
UNSURE: Final = "it is not known whether the last rows were written"
ANY: Final = -1  # partition: by the key, as all clients do
STEP: Final = "VALUE_CONVERTER"  # as Kafka Connect calls it


class KafkaConnectorLog:
    def __init__(self, admin: KafkaAdmin, prefix: str, clock: Clock) -> None:
        self._admin = admin
        self._prefix = prefix
        self._clock = clock

    @asynccontextmanager
    async def transaction(
        self, record: PipelineRecord, initial: ConnectorProgress
    ) -> AsyncIterator["KafkaConnectorTransaction"]:
        what = TransactionPurpose(
            id=f"{self._prefix}/ingress/connector/{initial.key}",
            topic=f"{self._prefix}.connectors",
            key=initial.key,
            kind=ConnectorProgress,
            place=f"{record.pipeline_uid}.connector",
            fenced=FENCED_BY_ANOTHER,
            unsure=UNSURE,
            strict=True,
        )
        async with exclusive_transaction(self._admin, what) as transaction:
            yield KafkaConnectorTransaction(transaction, record, initial, self._clock)


class KafkaConnectorTransaction:
    def __init__(
        self,
        transaction: ExclusiveTransaction[ConnectorProgress],
        record: PipelineRecord,
        initial: ConnectorProgress,
        clock: Clock,
    ) -> None:
        self._transaction = transaction
        self._clock = clock
        self._record = record
        self._initial = initial
        self.conclude = transaction.conclude

    async def read(self) -> ConnectorProgress | None:
        found = await self._transaction.read()
        return found[-1] if found else None

    async def send(
        self, topic: str, records: Sequence[Record], dead_topic: str, dead: Sequence[DeadRow]
    ) -> Sequence[tuple[int, int]]:
        rows = [
            Outgoing(topic=topic, partition=ANY, key=each.key, value=each.value) for each in records
        ]
        letters = [
            Outgoing(
                topic=dead_topic,
                partition=ANY,
                key=None,
                value=each.raw,
                headers=self._why(each),
            )
            for each in dead
        ]
        places = await self._transaction.send([*rows, *letters])
        return places[: len(rows)]

    def _why(self, dead: DeadRow) -> Headers:
        """Return the headers of a dead letter, as for a record that died in a stage. Its source is
        a file.
        """
        headers = {
            named.TOPIC: self._initial.url.partition("?")[0],
            named.PARTITION: "0",
            named.OFFSET: str(dead.row),
            named.CONNECTOR: self._record.name,
            named.TASK: "0",
            named.STEP: STEP,
            named.CLASS: f"{named.OWN}.{self._initial.connector}",
            named.ERROR: DeadReason.MALFORMED,
            named.MESSAGE: dead.reason,
            named.PIPELINE: self._record.name,
            named.UID: self._record.pipeline_uid,
            named.TOPIC_ID: "",
            named.STAGE: self._initial.connector,
            named.SINK: None,
            named.REASON: DeadReason.MALFORMED,
            named.RULE: None,
            named.BATCH: f"{self._initial.connector}:{dead.row}",
            named.AT: str(self._clock.now_ms()),
        }
        return named.with_facts((), headers)
