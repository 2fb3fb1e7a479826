"""The ports of status. `adapters` implement them; tests bring fakes."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from waybill_shared.contract.asked_views import PipelinesThere
from waybill_shared.contract.deliveries import WebhookDelivery
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.slots import DeadEntry, Progress
from waybill_shared.contract.status_events import StatusEvent
from waybill_shared.contract.vectors import Span, TopicPartition
from waybill_shared.contract.watches import TokenWatch
from waybill_status.core.outcomes.dead_letters import DeadRun, ReplayedAs
from waybill_status.core.outcomes.through import SinkPath
from waybill_status.core.outcomes.views import PipelineKey, SlotReading, SlotStamp, View
from waybill_status.core.watches.deliveries import Answered


class Owners(PipelinesThere, Protocol):
    """The pipelines that own tokens. An unknown owner is sure only after `News.catch_up`: ingress
    may know more."""

    def owner_of(self, short_id: str) -> PipelineRecord | None: ...


class News(Protocol):
    """The freshness of the pipelines that are known here."""

    async def catch_up(self) -> bool:
        """Wait until all is known that was written before this call. Return False if that takes too
        long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadReading:
    """Entries next to a slot, and the number of all entries in each partition that was asked for,
    at the moment of the stamp."""

    stamp: SlotStamp
    counts: Mapping[TopicPartition, int]
    entries: tuple[DeadEntry, ...]


class SlotStore(Protocol):
    """The store of the tracker. Every call raises Retryable if the store does not answer."""

    async def read(self, pipelines: Iterable[PipelineKey]) -> Mapping[PipelineKey, SlotReading]: ...

    async def stamps(self, pipelines: Iterable[PipelineKey]) -> Mapping[PipelineKey, SlotStamp]: ...

    async def newest(self, pipeline: PipelineKey, sink: str, count: int) -> list[Progress]:
        """Return the last `count` batches of a sink, oldest first."""

    async def count(self, pipeline: PipelineKey, sink: str) -> int:
        """Return how many batches of a sink are stored."""

    async def at_rank(self, pipeline: PipelineKey, sink: str, rank: int) -> Progress | None:
        """Return one stored batch, counted from the oldest."""

    async def dead(self, pipeline: PipelineKey, runs: Sequence[DeadRun], count: int) -> DeadReading:
        """Return all entries that overlap `runs`, and maybe others near them: each once, and at
        most `count`."""

    def wakes(self) -> AsyncIterator[PipelineKey | None]:
        """Yield pipelines with a changed slot; None first, when the subscription is active."""


class Replays(Protocol):
    """The positions at which dead letters are replayed, as far as that is known here."""

    def of(self, pipeline: PipelineKey, letter: str) -> ReplayedAs | None:
        """Return the message by which the letter with this id is replayed; None if none is
        known."""


class SlotViews(Protocol):
    """The views of pipelines, for one request or for many that wait."""

    @property
    def replays(self) -> Replays: ...

    @property
    def store(self) -> SlotStore: ...

    @property
    def written(self) -> dict[tuple[PipelineKey, SinkPath], tuple[Span, ...]]:
        """The offsets that batches wrote, once found: they never change."""

    def again(self) -> None:
        """Note that something could not be read now: those who wait ask again soon, whatever
        changes."""

    def view(self, pipeline: PipelineKey) -> View: ...

    async def newest(self, pipeline: PipelineKey, sink: str) -> list[Progress]: ...


class WatchReport(NamedTuple):
    """The report that is written when a watch ends. `text`: the event, as it is written."""

    event: StatusEvent
    text: str
    watch: TokenWatch
    delivery: WebhookDelivery | None = None

    @property
    def size(self) -> int:
        """About how many bytes it has."""
        return len(self.text) + (0 if self.delivery is None else len(self.delivery.event))


class DeliveryNote(NamedTuple):
    """The note that is written after an attempt: the delivery, and an event if it was given up."""

    delivery: WebhookDelivery
    event: StatusEvent | None


class WatchWriter(Protocol):
    """The writer of the watches of one partition. Only one process has it at a time. Each call
    raises Retryable, and PartitionLost if another process has it now."""

    async def report(self, reports: Sequence[WatchReport]) -> None:
        """Write all of it or nothing. After Retryable the result is not known."""

    async def note(self, notes: Sequence[DeliveryNote]) -> None:
        """Write results of deliveries, all or nothing. May be repeated."""

    async def finish(self) -> None:
        """Finish open transactions. Then a reader can find out what was written."""


class WatchWriters(Protocol):
    def writer(self, partition: int) -> AbstractAsyncContextManager[WatchWriter]:
        """Return the writer of a partition, and shut out the process that had it."""


class WatchShares(Protocol):
    @property
    def mine(self) -> frozenset[int]: ...

    @property
    def epoch(self) -> int:
        """A number that changes with every new assignment."""

    def partition_of(self, key: str) -> int: ...


class Receivers(Protocol):
    """The webhooks of users."""

    async def send(self, delivery: WebhookDelivery, event: str, now_s: int) -> Answered: ...


class EventLookup(Protocol):
    async def find(self, watch: TokenWatch) -> str | None:
        """Return the event of a watch, as it is sent; None if it is not kept any more. Raises
        Retryable."""
