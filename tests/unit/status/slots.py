"""One builder for each thing that status reads: slots, what died, tokens and claims."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import zip_longest

from builders import make_batch, make_input, make_record, make_sink, make_stage
from clocks import NOW
from message_builders import make_entry, make_lifecycle
from waybill_shared.access.authentication import DEFAULT_TENANT
from waybill_shared.contract.events import Definition, PipelineRecord, StageDefinition
from waybill_shared.contract.lifecycle_events import LifecycleEvent
from waybill_shared.contract.sealing import KeyRing
from waybill_shared.contract.slots import DeadCount, DeadEntry, Progress, Removal, SinkState, Slot
from waybill_shared.contract.tokens import Part, Token, pipeline_id, seal
from waybill_shared.contract.vectors import Span, TopicPartition, Vector
from waybill_status.core.outcomes.claims import Claim
from waybill_status.core.outcomes.views import SlotReading, SlotStamp, View, make_reading, view_of

RING = KeyRing(active=1, keys={1: bytes(32)})
TICK_S = 0.02
OPERATION = f"stop.orders.{'0f' * 16}"
UID = "uid-1"
KEY = (DEFAULT_TENANT, UID)
TOPIC = "b3JkZXJzLm9yZGVycy5pbg"
INNER = "ZW5yaWNoZWQub3JkZXJzLg"
Gone = Mapping[int, tuple[StageDefinition, ...]]
ENRICH, COPY, LOAD = "enrich/enriched@1", "enrich/copy@1", "load/lake@1"


def offsets(*ends: int, topic_id: str = TOPIC) -> Vector:
    return {(topic_id, partition): end for partition, end in enumerate(ends)}


def stages(*bases: int) -> tuple[StageDefinition, ...]:
    """orders → enrich → (copy, enriched → load → lake)"""
    orders = make_input("orders", topic_id=TOPIC, bases=bases)
    inner = replace(
        make_input("enriched", topic_id=INNER, root=False, bases=()), topic="orders.enriched"
    )
    enriched = make_sink("enriched", topic_id=INNER, terminal=False)
    return (
        make_stage("enrich", inputs=(orders,), sinks=(enriched, make_sink("copy", topic_id="c"))),
        make_stage("load", inputs=(inner,), sinks=(make_sink("lake"),)),
    )


def stages_of(content: Slot) -> tuple[StageDefinition, ...]:
    assert content.definition is not None
    return content.definition.stages


def with_stages(
    content: Slot, *stages: StageDefinition, generation: int | None = None, gone: Gone | None = None
) -> Slot:
    """`content` after its pipeline was changed; `gone`: what was removed, by generation."""
    assert content.definition is not None
    removals = tuple(Removal(generation=at, stages=removed) for at, removed in (gone or {}).items())
    return replace(
        content,
        generation=max(gone) if gone else generation or content.generation,
        definition=replace(content.definition, stages=stages),
        removals=removals or content.removals,
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
    entry = make_entry(start, end, stage=stage, sink=sink, topic_id=TOPIC, message=message)
    if end is None:
        entry = replace(entry, dead_partition=partition)
    name = id or f"{stage}/{sink}/{partition}/{start}"
    return replace(entry, id=name, partition=partition, up_to=up_to, runs=runs)


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
    event = make_lifecycle(phase, at=at, uid=UID)
    return replace(event, phase_from=None, reason="because")


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
    return make_record(name, uid=uid, stages=stages(0, 0), created_at=5)


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


def sealed(asked: Token, *, tenant: str = DEFAULT_TENANT) -> str:
    return seal(asked, RING, tenant=tenant, nonce=bytes(12))
