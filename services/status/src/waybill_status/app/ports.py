"""What the use cases need of the world. `adapters` fulfil these; tests bring fakes."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from waybill_shared.contract.asked_views import PipelinesThere
from waybill_shared.contract.deliveries import WebhookDelivery
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.replays import Source
from waybill_shared.contract.slots import DeadEntry, Progress
from waybill_shared.contract.status_events import StatusEvent
from waybill_shared.contract.vectors import Span, TopicPartition
from waybill_shared.contract.watches import TokenWatch
from waybill_status.core.dead import DeadRun, ReplayedAs
from waybill_status.core.deliveries import Answered
from waybill_status.core.legs import Way
from waybill_status.core.views import (
    PipelineKey,
    SlotReading,
    Stamp,
    View,
)


class Owners(PipelinesThere, Protocol):
    """Whose a token is; nobody's for sure only when the news are known: ingress may know more."""

    def owner_of(self, short_id: str) -> PipelineRecord | None: ...


class News(Protocol):
    """How far the pipelines have come that are known here."""

    async def catch_up(self) -> bool:
        """Wait until all is known that was told before this call; False: that takes too long."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadReading:
    """Entries that lie beside a slot, and how many there are in all of each partition that was
    asked for, as at the moment of the stamp."""

    stamp: Stamp
    counts: Mapping[TopicPartition, int]
    entries: tuple[DeadEntry, ...]


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

    async def dead(self, pipeline: PipelineKey, runs: Sequence[DeadRun], count: int) -> DeadReading:
        """All entries that reach into `runs`, and maybe others near them; each once, and at most
        so many."""
        ...

    def wakes(self) -> AsyncIterator[PipelineKey | None]:
        """Pipelines whose slot has changed; None first, when the subscription stands."""
        ...


class Replays(Protocol):
    """What was sent again of dead letters, as far as that is known here."""

    def of(self, pipeline: PipelineKey, source: Source) -> ReplayedAs | None:
        """Where the record that died at `source` stands now."""
        ...


class Sight(Protocol):
    """Pipelines as they are seen by one request or by many that wait."""

    @property
    def replays(self) -> Replays: ...

    @property
    def store(self) -> SlotStore: ...

    @property
    def written(self) -> dict[tuple[PipelineKey, Way], tuple[Span, ...]]:
        """What was found of where batches wrote: that never changes."""
        ...

    def again(self) -> None:
        """Something could not be read now: who waits asks again soon, whatever changes."""
        ...

    def view(self, pipeline: PipelineKey) -> View: ...

    async def newest(self, pipeline: PipelineKey, sink: str) -> list[Progress]: ...


class Told(NamedTuple):
    """What is written when a watch is told. `text`: the event, as it is written."""

    event: StatusEvent
    text: str
    watch: TokenWatch
    delivery: WebhookDelivery | None = None

    @property
    def size(self) -> int:
        """In bytes, about."""
        return len(self.text) + (0 if self.delivery is None else len(self.delivery.event))


class DeliveryNote(NamedTuple):
    """What is written after an attempt: how it is with the delivery, and that it was given up."""

    delivery: WebhookDelivery
    event: StatusEvent | None


class WatchVoice(Protocol):
    """Of whoever may tell of the watches of one partition now. Each call raises Retryable, and
    PartitionLost when another one may."""

    async def tell(self, told: Sequence[Told]) -> None:
        """All of it or nothing. After Retryable nobody knows."""
        ...

    async def note(self, notes: Sequence[DeliveryNote]) -> None:
        """As `tell`; may be said again."""
        ...

    async def settle(self) -> None:
        """Then it is known, to who reads on."""
        ...


class WatchVoices(Protocol):
    def voice(self, partition: int) -> AbstractAsyncContextManager[WatchVoice]:
        """Shut out who has one."""
        ...


class WatchShares(Protocol):
    @property
    def mine(self) -> frozenset[int]: ...

    @property
    def epoch(self) -> int:
        """Another one whenever they were given anew."""
        ...

    def partition_of(self, key: str) -> int: ...


class Receivers(Protocol):
    """Webhooks of others."""

    async def send(self, delivery: WebhookDelivery, event: str, now_s: int) -> Answered: ...


class ToldEvents(Protocol):
    async def find(self, watch: TokenWatch) -> str | None:
        """The event that a watch was told, as it is sent; None if it is not kept any more. Raises
        Retryable."""
        ...
