"""Shows where each stage of a pipeline is in the topics that it reads, and where these end."""

import asyncio
from collections.abc import Mapping
from typing import Final, Protocol

from waybill_shared.contract.callers import Caller
from waybill_shared.contract.errors import ContractError, Retryable
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.process.clock import Clock
from waybill_status.app.pipelines.lookup import Pipelines
from waybill_status.app.ports import SlotStore
from waybill_status.core.outcomes.views import SlotReading
from waybill_status.core.pipelines.offsets import EndsById, PipelineOffsets, TopicEnds, offsets_of

ENDS_TIMEOUT_S: Final = 3.0  # then a person gets the rest: the client of Kafka waits for 10 s


class StageEnds(Protocol):
    async def of_stages(self, record: PipelineRecord) -> Mapping[str, TopicEnds | ContractError]:
        """Return the ends of every topic that a stage reads, by its id, or an error: the topic has
        another id, or its broker does not answer. Raises Retryable if Kafka does not answer."""


class OffsetsReader:
    """The answer in every phase: what cannot be asked now is unknown, and the rest is shown."""

    def __init__(
        self, pipelines: Pipelines, ends: StageEnds, store: SlotStore, clock: Clock
    ) -> None:
        self._pipelines = pipelines
        self._ends = ends
        self._store = store
        self._clock = clock

    async def of(self, caller: Caller, name: str) -> PipelineOffsets:
        """Read the slot first: then what is written meanwhile is lag, and lag is never hidden."""
        record, now_ms = await self._pipelines.record(caller, name), self._clock.now_ms()
        reading = await self._read(record)
        return offsets_of(record, reading, await self._find_ends(record), at=now_ms)

    async def _read(self, record: PipelineRecord) -> SlotReading | None:
        key = (record.tenant, record.pipeline_uid)
        try:
            return (await self._store.read([key]))[key]
        except Retryable:
            return None

    async def _find_ends(self, record: PipelineRecord) -> EndsById:
        try:
            async with asyncio.timeout(ENDS_TIMEOUT_S):
                return await self._ends.of_stages(record)
        except TimeoutError:
            error = Retryable(f"kafka did not answer within {ENDS_TIMEOUT_S:g} s")
        except Retryable as silent:
            error = silent
        sources = (source for stage in record.stages for source in stage.inputs)
        return {source.topic_id: error for source in sources}
