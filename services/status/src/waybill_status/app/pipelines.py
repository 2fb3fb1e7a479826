"""Tells of pipelines: what is wanted of them, and what the newest life sign says."""

from typing import Protocol

from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.settings.service import DEFAULT_TENANT
from waybill_status.app.ports import SlotStore
from waybill_status.core.pipelines import (
    Detail,
    Summary,
    detail_of,
    summary_of,
)
from waybill_status.core.views import PipelineKey, Reading


class Records(Protocol):
    """The pipelines that are known here."""

    def by_name(self, tenant: str, name: str) -> PipelineRecord | None: ...

    def living(self, tenant: str) -> list[PipelineRecord]: ...


class Pipelines:
    def __init__(self, records: Records, store: SlotStore) -> None:
        self._records = records
        self._store = store

    async def all(self) -> list[Summary]:
        records = self._records.living(DEFAULT_TENANT)
        readings = await self._read(records)
        return [summary_of(record, readings.get(_key(record))) for record in records]

    async def one(self, name: str) -> Detail | None:
        record = self._records.by_name(DEFAULT_TENANT, name)
        if record is None:
            return None
        readings = await self._read([record])
        return detail_of(record, readings.get(_key(record)))

    def key_of(self, name: str) -> PipelineKey | None:
        record = self._records.by_name(DEFAULT_TENANT, name)
        return None if record is None else _key(record)

    def names(self) -> list[str]:
        return [record.name for record in self._records.living(DEFAULT_TENANT)]

    async def _read(self, records: list[PipelineRecord]) -> dict[PipelineKey, Reading]:
        """Without Redis what is wanted is known all the same."""
        try:
            return dict(await self._store.read([_key(record) for record in records]))
        except Retryable:
            return {}


def _key(record: PipelineRecord) -> PipelineKey:
    return (record.tenant, record.pipeline_uid)
