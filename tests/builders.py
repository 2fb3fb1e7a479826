"""One builder per event, with sensible defaults: a test says only what it is about."""

import json
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from typing import Literal, TypeVar

from waybill_shared.contract.batches import BatchReport
from waybill_shared.contract.dead_letter_facts import DeadLetters
from waybill_shared.contract.errors import UserError
from waybill_shared.contract.events import (
    Commit,
    Definition,
    Fact,
    Fence,
    Gap,
    InputDefinition,
    Output,
    PipelineRecord,
    Range,
    SinkDefinition,
    Snapshot,
    StageDefinition,
)
from waybill_shared.contract.manifest.applied import AppliedManifest
from waybill_shared.contract.manifest.reading import read_manifest
from waybill_shared.contract.slots import SLOT_VERSION, Progress, SinkState
from waybill_shared.contract.vectors import Span, Vector

TENANT = "default"
UID = "5d3ab3a2-8dd5-5f3b-9d4b-7e8f6a1b2c3d"
NOW = 1_795_251_600_000  # 2026-11-21T09:00:00Z
WithBatch = TypeVar("WithBatch", Commit, Fence, SinkState, Progress)
ORDERS_ID = "AAAAAAAAAAAAAAAAAAAAAA"
ENRICHED_ID = "BBBBBBBBBBBBBBBBBBBBBA"
MANIFEST = """\
version: 1
name: orders
inputs:
  - name: orders
    kafka: {topic: orders.in, partitions: 2}
    schema: "order_id BIGINT, amount DECIMAL(10,2)"
stages:
  - name: enrich
    inputs: [orders]
    sinks:
      - {name: enriched, kafka: {topic: orders.enriched}}
"""


@cache
def applied(text: str = MANIFEST) -> AppliedManifest:
    """As ingress makes it. If the text is no manifest, it is one that this version cannot read."""
    try:
        return read_manifest(text)
    except UserError:
        return AppliedManifest(native=json.dumps({"unreadable": text}), source=text)


def make_range(
    start: int = 0,
    end: int = 1,
    *,
    topic: str = "orders.in",
    topic_id: str = ORDERS_ID,
    partition: int = 0,
) -> Range:
    return Range(topic=topic, topic_id=topic_id, partition=partition, start=start, end=end)


def make_input(
    name: str = "orders",
    *,
    topic_id: str = ORDERS_ID,
    root: bool = True,
    bases: tuple[int, ...] = (0,),
) -> InputDefinition:
    """`bases` by partition."""
    return InputDefinition(
        name=name,
        topic=f"{name}.in",
        topic_id=topic_id,
        root=root,
        bases={(topic_id, partition): at for partition, at in enumerate(bases)},
    )


def make_sink(
    name: str = "lake",
    *,
    kind: str = "iceberg",
    topic_id: str | None = None,
    terminal: bool = True,
    since: int = 1,
    was: tuple[str, ...] = (),
) -> SinkDefinition:
    kind = "kafka" if topic_id is not None else kind
    return SinkDefinition(
        name=name,
        kind=kind,
        target=f"a {name}",
        topic_id=topic_id,
        terminal=terminal,
        since=since,
        was=was,
    )


def make_stage(
    name: str = "enrich",
    *,
    inputs: tuple[InputDefinition, ...] | None = None,
    sinks: tuple[SinkDefinition, ...] | None = None,
    since: int = 1,
    was: tuple[str, ...] = (),
) -> StageDefinition:
    return StageDefinition(
        name=name,
        since=since,
        inputs=(make_input(),) if inputs is None else inputs,
        sinks=(make_sink(),) if sinks is None else sinks,
        was=was,
    )


def make_definition(*stages: StageDefinition, deleted: bool = False) -> Definition:
    return Definition(name="orders", deleted=deleted, stages=stages or (make_stage(),))


def make_commit(
    frontier: Vector | None = None,
    *,
    stage: str = "enrich",
    sink: str = "lake",
    outputs: Vector | None = None,
    gaps: Iterable[Span] = (),
    sequence: int = 0,
    batch_id: int | None = None,
    version: int | None = None,
    since: int = 1,
    key: str = "",
) -> Commit:
    """`outputs` are cumulative, and so are the `gaps` in them."""
    return Commit(
        stage=stage,
        sink=sink,
        since=since,
        epoch=1,
        batch=make_batch(
            sequence,
            batch_id=sequence if batch_id is None else batch_id,
            committed_at=NOW + sequence,
            version={} if version is None else {"iceberg_snapshot_id": str(version)},
        ),
        inputs=(),
        frontier=(frontier if frontier is not None else {(ORDERS_ID, 0): 1}),
        outputs=tuple(
            Output(
                topic="t",
                topic_id=place[0],
                partition=place[1],
                first=0,
                end=end,
                gaps=tuple(Gap(start=g.start, end=g.end) for g in gaps if g.key == place),
            )
            for place, end in sorted((outputs or {}).items())
        ),
        key=key,
    )


def make_batch(sequence: int = 0, **changes: object) -> BatchReport:
    """`changes`: by field, what is to be another."""
    report = BatchReport(
        batch_id=sequence,
        sequence=sequence,
        lineage="7f1a",
        started_at=NOW,
        write_started_at=NOW,
        committed_at=NOW,
        rows=1,
    )
    return replace(report, **changes)  # type: ignore[arg-type]


def with_batch(whose: WithBatch, **changes: object) -> WithBatch:
    """The same, but for these fields of its batch."""
    batch = make_batch() if whose.batch is None else whose.batch
    return replace(whose, batch=replace(batch, **changes))  # type: ignore[arg-type]


def make_fact(
    body: Definition | Commit | DeadLetters | None = None, *, uid: str = UID, generation: int = 1
) -> Fact:
    return Fact(
        tenant=TENANT,
        pipeline_uid=uid,
        generation=generation,
        at=NOW,
        body=make_definition() if body is None else body,
    )


def make_fence(
    inputs: tuple[Range, ...] = (make_range(),),
    frontier: Vector | None = None,
    *,
    sequence: int = 0,
    batch_id: int = 0,
    outputs: tuple[Output, ...] = (),
) -> Fence:
    reached = {(run.topic_id, run.partition): run.end for run in inputs}
    return Fence(
        tenant=TENANT,
        pipeline_uid=UID,
        stage="enrich",
        sink="lake",
        generation=1,
        epoch=1,
        batch=make_batch(sequence, batch_id=batch_id),
        inputs=inputs,
        frontier=(reached if frontier is None else frontier),
        outputs=outputs,
    )


def make_record(
    name: str = "orders",
    *,
    uid: str = UID,
    generation: int = 1,
    desired: Literal["running", "stopped", "deleted"] = "running",
    stages: tuple[StageDefinition, ...] | None = None,
    created_at: int = NOW,
    tenant: str = TENANT,
    life: int = 0,
) -> PipelineRecord:
    return PipelineRecord(
        commanded_at=0,
        life=life,
        tenant=tenant,
        pipeline_uid=uid,
        name=name,
        generation=generation,
        desired=desired,
        manifest=applied(),
        stages=(make_stage(),) if stages is None else stages,
        created_at=created_at,
        updated_at=created_at,
    )


def make_snapshot(slot: str, *, partition: int = 0, position: int = 0, uid: str = UID) -> Snapshot:
    return Snapshot(
        tenant=TENANT,
        pipeline_uid=uid,
        partition=partition,
        position=position,
        slot_version=SLOT_VERSION,
        slot=slot,
        at=NOW,
    )
