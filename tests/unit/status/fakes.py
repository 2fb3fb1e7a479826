"""Pipelines, slots and a store as status sees them, in memory."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest

from builders import applied, make_batch
from waybill_shared.access.authentication import DEFAULT_TENANT
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.events import (
    Definition,
    InputDefinition,
    PipelineRecord,
    SinkDefinition,
    StageDefinition,
)
from waybill_shared.contract.lifecycle_events import LifecycleEvent
from waybill_shared.contract.sealing import KeyRing
from waybill_shared.contract.slots import DeadCount, DeadEntry, Progress, SinkState, Slot
from waybill_shared.contract.tokens import Part, Token, pipeline_id, seal
from waybill_shared.contract.vectors import Span, TopicPartition, Vector
from waybill_shared.topic_views.pipelines import PipelineDirectory
from waybill_status.app.ports import DeadReading
from waybill_status.core.outcomes.claims import Claim
from waybill_status.core.outcomes.dead_letters import DeadRun
from waybill_status.core.outcomes.views import (
    PipelineKey,
    SlotReading,
    SlotStamp,
    View,
    make_reading,
    view_of,
)

RING = KeyRing(active=1, keys={1: bytes(32)})
TICK_S = 0.02
OPERATION = f"stop.orders.{'0f' * 16}"
NOW = 1_795_000_000_000
UID = "uid-1"
KEY = (DEFAULT_TENANT, UID)
TOPIC = "b3JkZXJzLm9yZGVycy5pbg"
INNER = "ZW5yaWNoZWQub3JkZXJzLg"
ENRICH, COPY, LOAD = "enrich/enriched@1", "enrich/copy@1", "load/lake@1"


def offsets(*ends: int, topic_id: str = TOPIC) -> Vector:
    return {(topic_id, partition): end for partition, end in enumerate(ends)}


def stages(*bases: int) -> tuple[StageDefinition, ...]:
    """orders → enrich → (copy, enriched → load → lake)"""
    orders = InputDefinition(
        name="orders", topic="orders.in", topic_id=TOPIC, root=True, bases=offsets(*bases)
    )
    inner = InputDefinition(
        name="enriched", topic="orders.enriched", topic_id=INNER, root=False, bases={}
    )
    return (
        StageDefinition(
            name="enrich",
            since=1,
            inputs=(orders,),
            sinks=(
                SinkDefinition(
                    name="enriched",
                    kind="kafka",
                    target="e",
                    topic_id=INNER,
                    terminal=False,
                    since=1,
                ),
                SinkDefinition(
                    name="copy", kind="kafka", target="c", topic_id="c", terminal=True, since=1
                ),
            ),
        ),
        StageDefinition(
            name="load",
            since=1,
            inputs=(inner,),
            sinks=(
                SinkDefinition(
                    name="lake",
                    kind="iceberg",
                    target="raw.orders",
                    topic_id=None,
                    terminal=True,
                    since=1,
                ),
            ),
        ),
    )


def slot(
    *,
    enriched: tuple[int, ...] = (),
    copy: tuple[int, ...] = (),
    lake: tuple[int, ...] = (),
    bases: tuple[int, ...] = (0, 0),
    deleted: bool = False,
    generation: int = 1,
    lifecycle: LifecycleEvent | None = None,
    heard_at: int = NOW,
) -> Slot:
    """As the tracker keeps it: every sink has at least reached where its stages began."""
    reached = {ENRICH: enriched, COPY: copy, LOAD: lake}
    from_bases = {
        key: [max(pair) for pair in zip_longest(ends, bases, fillvalue=0)]
        for key, ends in reached.items()
    }
    return Slot(
        tenant=DEFAULT_TENANT,
        pipeline_uid=UID,
        generation=generation,
        definition=Definition(name="orders", deleted=deleted, stages=stages(*bases)),
        sinks={key: SinkState(reached=offsets(*ends)) for key, ends in from_bases.items()},
        lifecycle=lifecycle,
        heard_at=heard_at,
    )


def losing(content: Slot, sink: str, reason: str, *spans: Span) -> Slot:
    """`content`, and `spans` never come to `sink`."""
    state = content.sinks[sink]
    lost = {**state.lost, reason: spans}
    return replace(content, sinks={**content.sinks, sink: replace(state, lost=lost)})


def dead(
    start: int,
    end: int | None = None,
    *,
    stage: str = "enrich@1",
    sink: str | None = None,
    partition: int = 0,
    id: str | None = None,
    up_to: int = 1,
    message: str = "no number",
    runs: tuple[tuple[int, int], ...] = (),
) -> DeadEntry:
    """One record, or, with an `end`, a range."""
    place = {"dead_topic": "orders.in.dlq", "dead_partition": partition, "dead_offset": start}
    return DeadEntry(
        id=id or f"{stage}/{sink}/{partition}/{start}",
        stage=stage,
        sink=sink,
        topic_id=TOPIC,
        partition=partition,
        start=start,
        end=start + 1 if end is None else end,
        up_to=up_to,
        exact=end is None,
        reason="malformed",
        message=message,
        runs=runs,
        **(place if end is None else {}),  # type: ignore[arg-type]
    )


def burying(content: Slot, *entries: DeadEntry) -> Slot:
    """`content`, and it counts these beside it."""
    return replace(content, dead=counts_of(entries))


def counts_of(entries: Iterable[DeadEntry]) -> tuple[DeadCount, ...]:
    lengths: dict[TopicPartition, list[int]] = {}
    for entry in entries:
        key = (entry.topic_id, entry.partition)
        lengths.setdefault(key, []).append(entry.end - entry.start)
    return tuple(
        DeadCount(topic_id=key[0], partition=key[1], entries=len(each), longest=max(each))
        for key, each in lengths.items()
    )


def life(phase: str = "Running", *, at: int = NOW) -> LifecycleEvent:
    return LifecycleEvent(
        tenant=DEFAULT_TENANT,
        pipeline_uid=UID,
        pipeline="orders",
        generation=1,
        kind="transition",
        phase_from=None,
        phase=phase,
        reason="because",
        error=None,
        actor="stage_runner",
        run_id="r",
        attempt=0,
        next_at=None,
        at=at,
    )


def reading(
    content: Slot | None,
    *,
    run_id: str | None = "server",
    version: int = 1,
    age_ms: int = 0,
    mark: str = "",
) -> SlotReading:
    """Confirmed by a tracker at NOW by its clock."""
    stamp = SlotStamp(
        server_run_id="server", run_id=run_id, version=version, at=NOW, age_ms=age_ms, mark=mark
    )
    return make_reading(stamp, content)


def view(content: Slot | None, *, age_ms: int = 0) -> View:
    return view_of(reading(content, age_ms=age_ms))


def span(start: int, end: int, partition: int = 0) -> Span:
    return Span(topic_id=TOPIC, partition=partition, start=start, end=end)


def token(*spans: Span, generation: int = 1, uid: str = UID, issued_at: int = NOW) -> Token:
    owner = pipeline_id(DEFAULT_TENANT, uid)
    part = Part(pipeline_id=owner, generation=generation, spans=spans)
    return Token(issued_at=issued_at, request_id="00" * 8, parts=(part,))


def claim(*spans: Span, generation: int = 1) -> Claim:
    (part,) = token(*spans, generation=generation).parts
    return Claim(pipeline=KEY, name="orders", parts=(part,))


def record(name: str = "orders", uid: str = UID) -> PipelineRecord:
    return PipelineRecord(
        commanded_at=0,
        life=0,
        tenant=DEFAULT_TENANT,
        pipeline_uid=uid,
        name=name,
        generation=1,
        desired="running",
        manifest=applied(),
        stages=stages(0, 0),
        created_at=5,
        updated_at=5,
    )


def progress(
    number: int, *ends: int, before: int = 0, at: int | None = None, sink: str = LOAD
) -> Progress:
    return Progress(
        sink=sink,
        before=offsets(before),
        reached=offsets(*ends),
        batch=make_batch(
            number,
            started_at=number if at is None else at,
            committed_at=number if at is None else at,
            version={"iceberg_snapshot_id": str(100 + number)} if sink == LOAD else {},
        ),
    )


class FixedClock:
    def __init__(self, now: int = NOW) -> None:
        self.now = now

    def now_ms(self) -> int:
        return self.now


class FakeOwners:
    def __init__(self, *records: PipelineRecord) -> None:
        self.directory = PipelineDirectory()
        for each in records:
            self.directory.accept(each)
        self.known = True
        self.asked = 0
        self.late: PipelineRecord | None = None

    def owner_of(self, short_id: str) -> PipelineRecord | None:
        return self.directory.owner_of(short_id)

    def by_name(self, tenant: str, name: str) -> PipelineRecord | None:
        return self.directory.by_name(tenant, name)

    def living(self, tenant: str) -> Sequence[PipelineRecord]:
        return self.directory.living(tenant)

    async def catch_up(self) -> bool:
        self.asked += 1
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


def sealed(asked: Token, *, tenant: str = DEFAULT_TENANT) -> str:
    return seal(asked, RING, tenant=tenant, nonce=bytes(12))
