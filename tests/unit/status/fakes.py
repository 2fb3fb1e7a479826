"""Pipelines, the store and the clock as status sees them, in memory."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from unit.status.slots import KEY, burying, progress, reading
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.slots import DeadEntry, Progress, Slot
from waybill_shared.contract.vectors import TopicPartition
from waybill_shared.topic_views.pipelines import PipelineDirectory
from waybill_status.app.ports import DeadReading
from waybill_status.core.outcomes.dead_letters import DeadRun
from waybill_status.core.outcomes.views import PipelineKey, SlotReading, SlotStamp, make_reading


class FakeOwners:
    def __init__(self, *records: PipelineRecord) -> None:
        self.directory = PipelineDirectory()
        for each in records:
            self.directory.accept(each)
        self.known = True
        self.silent = False  # Kafka does not say what there is to know
        self.asked = 0
        self.late: PipelineRecord | None = None

    def owner_of(self, short_id: str) -> PipelineRecord | None:
        return self.directory.owner_of(short_id)

    def by_name(self, tenant: str, name: str) -> PipelineRecord | None:
        return self.directory.by_name(tenant, name)

    def former_holder(self, tenant: str, name: str) -> PipelineRecord | None:
        return self.directory.former_holder(tenant, name)

    def living(self, tenant: str) -> Sequence[PipelineRecord]:
        return self.directory.living(tenant)

    async def catch_up(self) -> bool:
        self.asked += 1
        if self.silent:
            await asyncio.Event().wait()
        if self.late is not None:
            self.directory.accept(self.late)
        return self.known


@dataclass
class FakeStore:
    """`SlotStore` in memory; counts the questions, and can be away."""

    readings: dict[PipelineKey, SlotReading] = field(default_factory=dict)
    histories: dict[tuple[PipelineKey, str], list[Progress]] = field(default_factory=dict)
    letters: dict[PipelineKey, tuple[DeadEntry, ...]] = field(default_factory=dict)
    server: str = "server"
    away: bool = False
    histories_away: bool = False
    letters_away: bool = False
    reads: int = 0
    history_reads: int = 0
    letter_reads: int = 0
    changes: "asyncio.Queue[PipelineKey | None]" = field(default_factory=asyncio.Queue)

    def put(
        self,
        content: Slot,
        *letters: DeadEntry,
        version: int,
        age_ms: int = 0,
        mark: str = "",
        wake: bool = True,
    ) -> None:
        self.letters[KEY] = letters
        content = burying(content, *letters)
        self.readings[KEY] = reading(content, version=version, age_ms=age_ms, mark=mark)
        for key, state in content.sinks.items():
            batch = progress(version, *state.reached.values(), sink=key)
            self.histories[KEY, key] = [batch]
        if wake:
            self.changes.put_nowait(KEY)

    def age(self, age_ms: int) -> None:
        for key, known in self.readings.items():
            self.readings[key] = replace(known, stamp=replace(known.stamp, age_ms=age_ms))

    async def read(self, pipelines: Iterable[PipelineKey]) -> Mapping[PipelineKey, SlotReading]:
        self.reads += 1
        return {key: self._one(key) for key in pipelines}

    async def stamps(self, pipelines: Iterable[PipelineKey]) -> Mapping[PipelineKey, SlotStamp]:
        return {key: self._one(key).stamp for key in pipelines}

    async def newest(self, pipeline: PipelineKey, sink: str, count: int) -> list[Progress]:
        self.history_reads += 1
        return self._history(pipeline, sink)[-count:]

    async def count(self, pipeline: PipelineKey, sink: str) -> int:
        return len(self._history(pipeline, sink))

    async def at_rank(self, pipeline: PipelineKey, sink: str, rank: int) -> Progress | None:
        self.history_reads += 1
        known = self._history(pipeline, sink)
        return known[rank] if rank < len(known) else None

    async def dead(self, pipeline: PipelineKey, runs: Sequence[DeadRun], count: int) -> DeadReading:
        self.letter_reads += 1
        if self.letters_away:
            raise Retryable("redis does not answer")
        stamp = self._one(pipeline).stamp
        by_place: dict[TopicPartition, list[DeadEntry]] = {run.key: [] for run in runs}
        for entry in self.letters.get(pipeline, ()):
            by_place.setdefault((entry.topic_id, entry.partition), []).append(entry)
        found = [
            entry
            for run in runs
            for entry in sorted(by_place[run.key], key=lambda entry: entry.end)
            if run.start < entry.end < run.end + run.longest
        ]
        counts = {key: len(by_place[key]) for key in by_place}
        entries = tuple(dict.fromkeys(found[:count]))
        return DeadReading(stamp=stamp, counts=counts, entries=entries)

    async def wakes(self) -> AsyncIterator[PipelineKey | None]:
        self._check()
        yield None
        while True:
            yield await self.changes.get()

    def _one(self, key: PipelineKey) -> SlotReading:
        self._check()
        known = self.readings.get(key)
        if known is None:
            stamp = SlotStamp(server_run_id=self.server, run_id=None, version=0, at=0, age_ms=None)
            return make_reading(stamp, None)
        return replace(known, stamp=replace(known.stamp, server_run_id=self.server))

    def _history(self, pipeline: PipelineKey, sink: str) -> list[Progress]:
        self._check()
        if self.histories_away:
            raise Retryable("redis does not answer")
        return self.histories.get((pipeline, sink), [])

    def _check(self) -> None:
        if self.away:
            raise Retryable("redis does not answer")
