"""The use cases of ingress over a Kafka in memory."""

import asyncio
from dataclasses import replace

import pytest

from unit.ingress.bodies import WholeBody
from unit.ingress.fakes import OLD_ID, FakeDirectory, FakeFetcher, FakeKafka, FakeMint
from waybill_ingress.adapters.http.bodies import RecordSpool
from waybill_ingress.app.commands import Commands
from waybill_ingress.app.connector_ports import Fetcher
from waybill_ingress.app.records import Receipt, Records
from waybill_ingress.app.registry import Registry
from waybill_ingress.app.tokens import TokenIssuer
from waybill_ingress.core.bodies.lines import read_ndjson
from waybill_ingress.core.if_match import Demand
from waybill_ingress.core.rows import RowLimits
from waybill_ingress.core.token_coverage import NamedSpan
from waybill_shared.access.authentication import ANYONE
from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.vectors import Span

OTHER = replace(ANYONE, tenant="other")
LIMITS = RowLimits(records_max=10, record_bytes_max=1_000, bytes_max=10_000_000)
THREE = b'{"id": 1}\n{"id": 2}\n{"id": 3}'


class World:
    def __init__(
        self,
        *records: PipelineRecord,
        kafka: FakeKafka | None = None,
        fetcher: Fetcher | None = None,
    ) -> None:
        self.kafka = kafka or FakeKafka()
        self.mint = FakeMint()
        self.directory = FakeDirectory(*records)
        self.registry = Registry(self.directory, self.directory, self.kafka, self.mint)
        self.records = Records(
            self.registry, self.kafka, self.kafka, self.mint, LIMITS, spool=RecordSpool
        )
        self.tokens = TokenIssuer(self.registry, self.kafka, self.mint)
        self.commands = Commands(
            self.registry,
            self.kafka,
            self.mint,
            "waybill",
            fetcher=fetcher or FakeFetcher(),
            places=dict,
        )

    def write(
        self,
        body: bytes = THREE,
        *,
        name: str = "orders",
        to: str = "orders",
        atomic: bool = False,
        demand: Demand | None = None,
    ) -> Receipt:
        whole = WholeBody(body)
        written = self.records.write(
            ANYONE, name, to, whole, read_ndjson, atomic=atomic, demand=demand
        )
        return asyncio.run(written)

    def refusal(
        self,
        body: bytes = THREE,
        *,
        name: str = "orders",
        to: str = "orders",
        demand: Demand | None = None,
    ) -> Refusal:
        with pytest.raises(Refusal) as refused:
            self.write(body, name=name, to=to, demand=demand)
        return refused.value

    def for_positions(self, *positions: NamedSpan) -> tuple[Span, ...]:
        asyncio.run(self.tokens.for_positions(ANYONE, "orders", positions))
        (part,) = self.mint.parts
        return part.spans


def position(partition: int, start: int, end: int, **fields: str | None) -> NamedSpan:
    given = {"topic": "orders.in", "topic_id": OLD_ID, **fields}
    return NamedSpan(partition=partition, start=start, end=end, **given)  # type: ignore[arg-type]
