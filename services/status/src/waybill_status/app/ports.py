"""What the use cases need of the world. `adapters` fulfil these; tests bring fakes."""

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Protocol

from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.slots import Progress
from waybill_status.core.views import (
    PipelineKey,
    SlotReading,
    Stamp,
    View,
)


class Owners(Protocol):
    """Whose a token is; nobody's for sure only when the news are known: ingress may know more."""

    def owner_of(self, short_id: str) -> PipelineRecord | None: ...


class News(Protocol):
    """How far the pipelines have come that are known here."""

    async def catch_up(self) -> bool:
        """Wait until all is known that was told before this call; False: that takes too long."""
        ...


class SlotStore(Protocol):
    """What the tracker keeps. Every call raises Retryable when the store does not answer."""

    async def read(self, pipelines: Iterable[PipelineKey]) -> Mapping[PipelineKey, SlotReading]: ...

    async def stamps(self, pipelines: Iterable[PipelineKey]) -> Mapping[PipelineKey, Stamp]: ...

    async def newest(self, pipeline: PipelineKey, sink: str, count: int) -> list[Progress]:
        """The last `count` batches of a sink, oldest first."""
        ...

    async def count(self, pipeline: PipelineKey, sink: str) -> int:
        """How many batches of a sink are remembered."""
        ...

    async def at_rank(self, pipeline: PipelineKey, sink: str, rank: int) -> Progress | None:
        """One remembered batch, counted from the oldest."""
        ...

    def wakes(self) -> AsyncIterator[PipelineKey | None]:
        """Pipelines whose slot has changed; None first, when the subscription stands."""
        ...


class Sight(Protocol):
    """Pipelines as they are seen by one request or by many that wait."""

    @property
    def store(self) -> SlotStore: ...

    def view(self, pipeline: PipelineKey) -> View: ...

    async def newest(self, pipeline: PipelineKey, sink: str) -> list[Progress]: ...
