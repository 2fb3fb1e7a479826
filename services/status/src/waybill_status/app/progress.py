"""Tells how far a pipeline has come with all that its inputs hold now."""

from typing import Protocol

from waybill_shared.contract.callers import Caller
from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.problems import Slug
from waybill_status.app.pipelines import Pipelines
from waybill_status.app.ports import SlotStore
from waybill_status.core.progress import PipelineProgress, progress_of
from waybill_status.core.views import view_of


class InputEnds(Protocol):
    async def ends(self, record: PipelineRecord) -> dict[str, dict[int, int]]:
        """One past the last record of each partition, by input. Retryable if Kafka does not answer;
        a Refusal if a topic is not the one that the pipeline reads."""
        ...


class ProgressReader:
    def __init__(self, pipelines: Pipelines, ends: InputEnds, store: SlotStore) -> None:
        self._pipelines = pipelines
        self._ends = ends
        self._store = store

    async def of(self, caller: Caller, name: str) -> PipelineProgress:
        record = await self._pipelines.record(caller, name)
        ends = await self._ends.ends(record)
        key = (record.tenant, record.pipeline_uid)
        found = progress_of(record, view_of((await self._store.read([key]))[key]), ends)
        if not isinstance(found, PipelineProgress):
            detail = f"nobody can say how far {name} has come: {found}"
            raise Refusal(Slug.OUTCOME_UNKNOWN, detail, reason=found)
        return found
