"""Redis as it is used here: the tracker's script, the readers' script, and how a server loses data.

Slots stay values: what they look like as JSON is tested where it is written.
"""

from collections import deque
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field, replace

from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.slots import (
    HISTORY_LENGTH_MAX,
    DeadEntry,
    Entry,
    Progress,
    Slot,
    progress_from_json,
)
from waybill_shared.process.clock import Clock
from waybill_shared.process.signal import Signal
from waybill_status.app.ports import DeadReading
from waybill_status.core.outcomes.dead_letters import DeadRun
from waybill_status.core.outcomes.views import PipelineKey, SlotReading, SlotStamp, make_reading
from waybill_token_tracker.app.ports import SlotWrite, WriteResult

SUBSCRIPTION_S = 3_600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """The hash of one pipeline, and its histories."""

    slot: Slot
    run_id: str
    topic_id: str
    position: int
    mark: str
    at: int
    confirmed_at: int
    """By the server's own clock."""
    version: int
    history: dict[str, tuple[Entry, ...]] = field(default_factory=dict)
    dead: tuple[DeadEntry, ...] = ()


class Subscription:
    """Which slots have changed, as long as the connection stands."""

    def __init__(self) -> None:
        self._changed: deque[PipelineKey] = deque()
        self._news = Signal()
        self._cut = False

    def publish(self, pipeline: PipelineKey) -> None:
        self._changed.append(pipeline)
        self._news.notify()

    def cut(self) -> None:
        self._cut = True
        self._news.notify()

    async def next(self) -> PipelineKey:
        while not self._changed and not self._cut:
            await self._news.wait(SUBSCRIPTION_S)
        if not self._changed:
            raise Retryable("redis: the connection is gone")
        return self._changed.popleft()


@dataclass(slots=True)
class RedisServer:
    """One server, with copies of what it held at earlier moments (dumps, lagging replicas)."""

    clock: Clock
    run_id: str = "run-0"
    away: bool = False
    stored: dict[PipelineKey, Stored] = field(default_factory=dict)
    copies: list[dict[PipelineKey, Stored]] = field(default_factory=list)
    finders: dict[PipelineKey, str] = field(default_factory=dict)
    """By missing slot, who was the last to find that."""
    sound: set[PipelineKey] = field(default_factory=set)
    """For the checker: pipelines whose slot was written here and not lost since."""
    starts: int = 0
    subscriptions: list[Subscription] = field(default_factory=list)
    hushed: bool = False
    """Whether what is published reaches nobody, and nobody notices."""

    def copy(self) -> None:
        self.copies.append(dict(self.stored))

    def flush(self) -> None:
        self.stored.clear()
        self.finders.clear()
        self.sound.clear()

    def restart(self, content: dict[PipelineKey, Stored]) -> None:
        """Come back with another content: an old dump, or what a replica had."""
        self.starts += 1
        self.run_id = f"run-{self.starts}"
        self.stored = dict(content)
        self.finders.clear()
        self.sound.clear()
        self.cut()

    def subscribe(self) -> Subscription:
        self.check()
        self.subscriptions.append(Subscription())
        return self.subscriptions[-1]

    def publish(self, pipeline: PipelineKey) -> None:
        for subscription in self.subscriptions if not self.hushed else ():
            subscription.publish(pipeline)

    def cut(self) -> None:
        """Connections end; who was connected notices."""
        for subscription in self.subscriptions:
            subscription.cut()
        self.subscriptions.clear()

    def check(self) -> None:
        if self.away:
            raise Retryable("redis: no connection")


class Store:
    """Fulfils the tracker's `Store` as its Lua script does."""

    def __init__(self, server: RedisServer) -> None:
        self._server = server

    def write(self, writes: Sequence[SlotWrite]) -> list[WriteResult]:
        self._server.check()
        return [self._write(write) for write in writes]

    def _write(self, write: SlotWrite) -> WriteResult:
        server, key = self._server, (write.tenant, write.pipeline_uid)
        found = server.stored.get(key)
        held = found if found is not None and is_valid(found, server.run_id, write) else None
        if held is not None and is_newer(held, write):
            return WriteResult.NEWER
        if held is None and not (write.rebuilt and server.finders.get(key) == write.writer):
            server.finders[key] = write.writer
            return WriteResult.LOST
        if write.slot is None:
            assert held is not None
            if held.mark != write.mark:
                return WriteResult.STALE
            server.stored[key] = replace(
                held, at=write.at, confirmed_at=server.clock.now_ms(), position=write.position
            )
            return WriteResult.WRITTEN
        server.stored[key] = Stored(
            slot=write.slot,
            run_id=server.run_id,
            topic_id=write.topic_id,
            position=write.position,
            mark=write.mark,
            at=write.at,
            confirmed_at=server.clock.now_ms(),
            version=found.version + 1 if found is not None else 1,
            history=_history({} if held is None or write.rebuilt else held.history, write),
            dead=_dead(held, write),
        )
        server.finders.pop(key, None)
        server.sound.add(key)
        server.publish(key)
        return WriteResult.WRITTEN


def is_valid(held: Stored, run_id: str, write: SlotWrite) -> bool:
    return held.run_id == run_id and held.topic_id == write.topic_id


def is_newer(held: Stored, write: SlotWrite) -> bool:
    return held.position > write.position


def _dead(held: Stored | None, write: SlotWrite) -> tuple[DeadEntry, ...]:
    """What is written again stands there once; what the slot does not count is not looked at."""
    before = () if held is None or write.replaces_dead else held.dead
    return tuple(dict.fromkeys((*before, *write.dead)))


def _history(
    before: dict[str, tuple[Entry, ...]], write: SlotWrite
) -> dict[str, tuple[Entry, ...]]:
    """What is written again stands there once, as in a sorted set."""
    after = dict(before)
    for entry in write.history:
        held = tuple(each for each in after.get(entry.sink, ()) if each != entry)
        after[entry.sink] = (*held, entry)[-HISTORY_LENGTH_MAX:]
    return after


class Slots:
    """Fulfils the readers' `SlotStore`."""

    def __init__(self, server: RedisServer) -> None:
        self._server = server

    async def read(self, pipelines: Iterable[PipelineKey]) -> dict[PipelineKey, SlotReading]:
        self._server.check()
        return {key: self.reading(key) for key in pipelines}

    async def stamps(self, pipelines: Iterable[PipelineKey]) -> dict[PipelineKey, SlotStamp]:
        self._server.check()
        return {key: self.reading(key).stamp for key in pipelines}

    async def newest(self, pipeline: PipelineKey, sink: str, count: int) -> list[Progress]:
        return [progress_from_json(e.progress) for e in self._entries(pipeline, sink)[-count:]]

    async def count(self, pipeline: PipelineKey, sink: str) -> int:
        return len(self._entries(pipeline, sink))

    async def at_rank(self, pipeline: PipelineKey, sink: str, rank: int) -> Progress | None:
        found = self._entries(pipeline, sink)
        return progress_from_json(found[rank].progress) if rank < len(found) else None

    async def dead(self, pipeline: PipelineKey, runs: Sequence[DeadRun], count: int) -> DeadReading:
        self._server.check()
        stored = self._server.stored.get(pipeline)
        entries = stored.dead if stored is not None else ()
        found = [
            entry
            for run in runs
            for entry in sorted(entries, key=lambda entry: entry.end)
            if run.key == (entry.topic_id, entry.partition)
            if run.start < entry.end < run.end + run.longest
        ]
        return DeadReading(
            stamp=self.reading(pipeline).stamp,
            counts={
                run.key: sum(run.key == (e.topic_id, e.partition) for e in entries) for run in runs
            },
            entries=tuple(dict.fromkeys(found[:count])),
        )

    async def wakes(self) -> AsyncIterator[PipelineKey | None]:
        subscription = self._server.subscribe()
        yield None
        while True:
            yield await subscription.next()

    def _entries(self, pipeline: PipelineKey, sink: str) -> tuple[Entry, ...]:
        self._server.check()
        stored = self._server.stored.get(pipeline)
        return stored.history.get(sink, ()) if stored is not None else ()

    def _age_ms(self, stored: Stored | None) -> int | None:
        return None if stored is None else self._server.clock.now_ms() - stored.confirmed_at

    def reading(self, key: PipelineKey) -> SlotReading:
        stored = self._server.stored.get(key)
        stamp = SlotStamp(
            server_run_id=self._server.run_id,
            run_id=stored.run_id if stored is not None else None,
            version=stored.version if stored is not None else 0,
            at=stored.at if stored is not None else 0,
            age_ms=self._age_ms(stored),
            mark=stored.mark if stored is not None else "",
        )
        return make_reading(stamp, stored.slot if stored is not None else None)
