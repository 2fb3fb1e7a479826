"""Tells of pipelines: what is wanted of them, and what the newest life sign says."""

from typing import Protocol

from waybill_shared.contract.callers import Caller
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.pipelines import no_pipeline
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

    async def all(self, caller: Caller) -> list[Summary]:
        records = self._records.living(caller.tenant)
        readings = await self._read(records)
        return [summary_of(record, readings.get(_key(record))) for record in records]

    async def one(self, caller: Caller, name: str) -> Detail:
        record = self._found(caller, name)
        readings = await self._read([record])
        return detail_of(record, readings.get(_key(record)))

    def key_of(self, caller: Caller, name: str) -> PipelineKey:
        return _key(self._found(caller, name))

    def _found(self, caller: Caller, name: str) -> PipelineRecord:
        record = self._records.by_name(caller.tenant, name)
        if record is None:
            known = self._records.living(caller.tenant)
            raise no_pipeline(name, [each.name for each in known])
        return record

    async def _read(self, records: list[PipelineRecord]) -> dict[PipelineKey, Reading]:
        """Without Redis what is wanted is known all the same."""
        try:
            return dict(await self._store.read([_key(record) for record in records]))
        except Retryable:
            return {}


def _key(record: PipelineRecord) -> PipelineKey:
    return (record.tenant, record.pipeline_uid)
