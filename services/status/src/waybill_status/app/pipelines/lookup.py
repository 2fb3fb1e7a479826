"""Shows pipelines: what is wanted of them, and their newest sign of life.

A user may ask right after ingress answered that a change is done. So before each answer this waits
a moment until all earlier messages about pipelines are read.
"""

import asyncio
from dataclasses import dataclass
from typing import Protocol

from waybill_shared.contract.callers import Caller
from waybill_shared.contract.errors import Refusal, Retryable
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.pipelines import former_name, no_pipeline
from waybill_shared.contract.problems import Slug
from waybill_shared.topic_views.connectors import KnownConnectors
from waybill_status.app.ports import News, SlotStore
from waybill_status.core.outcomes.views import PipelineKey, SlotReading
from waybill_status.core.pipelines.answers import (
    GenerationManifest,
    PipelineDetail,
    PipelineSummary,
)
from waybill_status.core.pipelines.details import detail_of, manifests_of, summary_of
from waybill_status.core.pipelines.listing import ListWanted

NEWS_WAIT_S = 1.0  # mostly it takes milliseconds; without Kafka, what is known is shown


class KnownPipelines(Protocol):
    """The pipelines that are known here."""

    def by_name(self, tenant: str, name: str) -> PipelineRecord | None: ...

    def former_holder(self, tenant: str, name: str) -> PipelineRecord | None: ...

    def living(self, tenant: str) -> list[PipelineRecord]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelinesPage:
    """Pipelines by name. `next`: the last name, if there are more."""

    items: tuple[PipelineSummary, ...]
    next: str | None


class Pipelines:
    def __init__(
        self,
        records: KnownPipelines,
        news: News,
        store: SlotStore,
        connectors: KnownConnectors | None = None,
    ) -> None:
        self._records = records
        self._news = news
        self._store = store
        self._connectors = connectors or KnownConnectors()

    async def all(self, caller: Caller) -> list[PipelineSummary]:
        return await self._summaries(await self.records(caller))

    async def page(self, caller: Caller, wanted: ListWanted) -> PipelinesPage:
        """Return the pipelines that are wanted, by name. Only slots that matter are read."""
        records = [each for each in await self.records(caller) if wanted.has_place_for(each)]
        if not wanted.phases:
            records = records[: wanted.limit + 1]
        found = await self._summaries(records)
        fitting = [each for each in found if not wanted.phases or each.phase in wanted.phases]
        items = tuple(fitting[: wanted.limit])
        more = len(fitting) > wanted.limit
        return PipelinesPage(items=items, next=items[-1].name if more else None)

    async def one(self, caller: Caller, name: str) -> PipelineDetail:
        record = await self.record(caller, name)
        readings = await self._read([record])
        return detail_of(record, readings.get(_key(record)), self._connectors)

    async def manifests(self, caller: Caller, name: str) -> list[GenerationManifest]:
        return manifests_of(await self.record(caller, name))

    async def records(self, caller: Caller) -> list[PipelineRecord]:
        await self._catch_up()
        return self._records.living(caller.tenant)

    async def key_of(self, caller: Caller, name: str) -> PipelineKey:
        return _key(await self.record(caller, name))

    async def record(self, caller: Caller, name: str) -> PipelineRecord:
        caught_up = await self._catch_up()
        record = self._records.by_name(caller.tenant, name)
        if record is not None:
            return record
        if not caught_up:
            detail = "this status does not know all pipelines yet, or cannot ask kafka: try again"
            raise Refusal(Slug.PIPELINE_NOT_READY, detail)
        former = self._records.former_holder(caller.tenant, name)
        if former is not None and name in former.was:
            raise former_name(name, former.name)
        known = self._records.living(caller.tenant)
        raise no_pipeline(name, [each.name for each in known])

    async def _catch_up(self) -> bool:
        try:
            async with asyncio.timeout(NEWS_WAIT_S):
                return await self._news.catch_up()
        except TimeoutError:
            return False

    async def _summaries(self, records: list[PipelineRecord]) -> list[PipelineSummary]:
        readings = await self._read(records)
        return [summary_of(record, readings.get(_key(record))) for record in records]

    async def _read(self, records: list[PipelineRecord]) -> dict[PipelineKey, SlotReading]:
        """Return the readings; none without Redis, because the records are known without it."""
        try:
            return dict(await self._store.read([_key(record) for record in records]))
        except Retryable:
            return {}


def _key(record: PipelineRecord) -> PipelineKey:
    return (record.tenant, record.pipeline_uid)
