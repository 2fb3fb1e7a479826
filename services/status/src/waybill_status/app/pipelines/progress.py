"""Shows how much of their inputs pipelines have processed by now: one pipeline, or all at once."""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from typing import Final, Protocol

from waybill_shared.contract.callers import Caller
from waybill_shared.contract.errors import ContractError, Refusal
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.problems import Slug
from waybill_shared.process.clock import Clock
from waybill_shared.process.signal import loop_time_s
from waybill_shared.topic_views.connectors import KnownConnectors
from waybill_status.app.pipelines.lookup import Pipelines
from waybill_status.app.ports import SlotStore
from waybill_status.core.outcomes.views import view_of
from waybill_status.core.pipelines.flow import Flow, flow_of, unknown_flow
from waybill_status.core.pipelines.offsets import TopicEnds
from waybill_status.core.pipelines.progress import PipelineProgress, progress_of

FRESH_S: Final = 1.0  # however many pages ask, Kafka is asked only once in this time

Ends = Mapping[str, TopicEnds]
"""Those of the inputs, by name."""


class InputEnds(Protocol):
    async def ends(self, records: Sequence[PipelineRecord]) -> list[Ends | ContractError]:
        """Return the ends of each pipeline, or an error: its topic has another id, or the broker of
        a topic does not answer. Raises Retryable if Kafka does not answer."""


class _Reading:
    def __init__(self, flow: Coroutine[None, None, Flow]) -> None:
        self.task = asyncio.create_task(flow)
        self._ended_s: float | None = None
        self.task.add_done_callback(self._note_end)

    def is_old(self) -> bool:
        return self._ended_s is not None and loop_time_s() - self._ended_s > FRESH_S

    def _note_end(self, task: asyncio.Task[Flow]) -> None:
        self._ended_s = loop_time_s()
        if not task.cancelled():
            task.exception()  # the request may have ended


class ProgressReader:
    def __init__(
        self,
        pipelines: Pipelines,
        ends: InputEnds,
        store: SlotStore,
        clock: Clock,
        connectors: KnownConnectors,
    ) -> None:
        self._pipelines = pipelines
        self._connectors = connectors
        self._ends = ends
        self._store = store
        self._clock = clock
        self._newest: dict[str, _Reading] = {}

    async def of(self, caller: Caller, name: str) -> PipelineProgress:
        record = await self._pipelines.record(caller, name)
        (ends,) = await self._ends.ends([record])
        if isinstance(ends, ContractError):
            raise ends
        key = (record.tenant, record.pipeline_uid)
        found = progress_of(record, view_of((await self._store.read([key]))[key]), ends)
        if not isinstance(found, PipelineProgress):
            detail = f"nobody can say how far {name} has come: {found}"
            raise Refusal(Slug.OUTCOME_UNKNOWN, detail, reason=found)
        return found

    async def all(self, caller: Caller) -> Flow:
        """Return the flow of all pipelines, at most a second old. All who ask meanwhile get the
        same, also the same error."""
        reading = self._newest.get(caller.tenant)
        if reading is None or reading.is_old():
            reading = self._newest[caller.tenant] = _Reading(self._read(caller))
        return await asyncio.shield(reading.task)

    async def _read(self, caller: Caller) -> Flow:
        """Read the ends first: then all that has arrived was written by then."""
        records, now_ms = await self._pipelines.records(caller), self._clock.now_ms()
        ends = await self._ends.ends(records)
        keys = [(record.tenant, record.pipeline_uid) for record in records]
        readings = await self._store.read(keys)
        return Flow(
            at=now_ms,
            items=tuple(
                unknown_flow(record, str(end))
                if isinstance(end, ContractError)
                else flow_of(
                    record,
                    view_of(readings[key]),
                    end,
                    dead_of_files=self._connectors.dead_of(record.pipeline_uid),
                )
                for record, key, end in zip(records, keys, ends, strict=True)
            ),
        )
