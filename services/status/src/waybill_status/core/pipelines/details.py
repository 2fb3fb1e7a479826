"""Describes a pipeline for `answers`: its record, with the newest sign of life."""

from dataclasses import fields

from waybill_shared.contract.batches import BatchReport
from waybill_shared.contract.connector_view import ConnectorDetail, connector_detail
from waybill_shared.contract.driver_news import IgnoredFields, SinkWait
from waybill_shared.contract.errors import UserError
from waybill_shared.contract.events import PipelineRecord, SinkDefinition, StageDefinition
from waybill_shared.contract.graph import graph_of
from waybill_shared.contract.lifecycle import Phase, allowed_actions
from waybill_shared.contract.lifecycle_events import LifecycleError, LifecycleEvent
from waybill_shared.contract.manifest.inputs import Input
from waybill_shared.contract.slots import Slot, key_of
from waybill_shared.topic_views.connectors import KnownConnectors
from waybill_status.core.outcomes.views import SlotReading, silent, usable_slot, waits_of
from waybill_status.core.pipelines.answers import (
    Failure,
    GenerationManifest,
    InputColumn,
    InputDetail,
    LastBatch,
    PipelineDetail,
    PipelineSummary,
    SinkDetail,
    StageDetail,
)
from waybill_status.core.pipelines.conditions import conditions_of
from waybill_status.core.pipelines.phases import newest_event, next_run_at
from waybill_status.core.pipelines.stuck import PipelineNow, stuck_of


def manifests_of(record: PipelineRecord) -> list[GenerationManifest]:
    """Return the manifests, newest first."""
    now = GenerationManifest(
        generation=record.generation, manifest=record.manifest.source, until=None
    )
    before = [
        GenerationManifest(
            generation=each.generation, manifest=each.manifest.source, until=each.until
        )
        for each in reversed(record.earlier)
    ]
    return [now, *before]


def summary_of(record: PipelineRecord, reading: SlotReading | None) -> PipelineSummary:
    slot, newest = usable_slot(reading), _newest(record, reading)
    phase: str = Phase.UNKNOWN
    reason, since = "", None
    if reading is None:
        reason = "redis does not answer"
    elif slot is None:
        reason = "the tracker has reported nothing of it yet"
    elif slot.lifecycle is None or newest is None:
        phase, since = Phase.CREATED, record.created_at
    elif silent(slot, reading.stamp.now_ms):
        reason, since = f"no sign of its runner, last {slot.lifecycle.phase}", slot.heard_at
    else:
        phase, reason, since = newest.phase, newest.reason, newest.at
    return PipelineSummary(
        name=record.name,
        uid=record.pipeline_uid,
        generation=record.generation,
        desired=record.desired,
        phase=phase,
        reason=reason or None,
        since=since,
        allowed_actions=allowed_actions(
            phase, record.desired, has_stopped=bool(record.stopped_stages)
        ),
        conditions=conditions_of(record.name, reading),
        stuck=stuck_of(_now(record, phase, reason or None, reading)),
    )


def detail_of(
    record: PipelineRecord, reading: SlotReading | None, connectors: KnownConnectors
) -> PipelineDetail:
    slot, newest = usable_slot(reading), _newest(record, reading)
    summary, waits = summary_of(record, reading), _waits(slot, reading)
    return PipelineDetail(
        **{each.name: getattr(summary, each.name) for each in fields(summary)},
        desired_by=record.desired_by,
        run=record.run,
        blocked_by=_find_obstacle(record, reading),
        attempt=newest.attempt if newest is not None else 0,
        next_attempt_at=newest.next_at if newest is not None else None,
        escalates_at=newest.escalates_at if newest is not None else None,
        next_run_at=next_run_at(record, summary.phase),
        parallelism=_parallelism(record, newest),
        error=_failure(newest.error) if newest is not None else None,
        sql_guard=newest.sql_guard if newest is not None else None,
        inputs=tuple(_inputs(record, () if slot is None else slot.ignored, connectors)),
        stages=tuple(_stage(stage, slot, waits) for stage in record.stages),
        graph=graph_of(record.stages),
        manifest=record.manifest.source,
    )


def _now(
    record: PipelineRecord, phase: str, reason: str | None, reading: SlotReading | None
) -> PipelineNow:
    newest = _newest(record, reading)
    return PipelineNow(
        name=record.name,
        desired=record.desired,
        phase=phase,
        reason=reason,
        error=newest.error if newest is not None else None,
        blocked_by=_find_obstacle(record, reading),
        waits=_waits(usable_slot(reading), reading),
        attempt=newest.attempt if newest is not None else 0,
        next_at=newest.next_at if newest is not None else None,
        conditions=conditions_of(record.name, reading),
        changed=bool(record.earlier),
    )


def _newest(record: PipelineRecord, reading: SlotReading | None) -> LifecycleEvent | None:
    slot = usable_slot(reading)
    return None if slot is None else newest_event(record, slot.lifecycle)


def _find_obstacle(record: PipelineRecord, reading: SlotReading | None) -> str | None:
    """Return what the driver waits for, if its runner is alive, and this is the driver's phase."""
    slot = usable_slot(reading)
    if slot is None or reading is None or silent(slot, reading.stamp.now_ms):
        return None
    return slot.blocked_by if _newest(record, reading) == slot.lifecycle else None


def _waits(slot: Slot | None, reading: SlotReading | None) -> tuple[SinkWait, ...]:
    return () if slot is None or reading is None else waits_of(slot, reading.stamp.now_ms)


def _parallelism(record: PipelineRecord, newest: LifecycleEvent | None) -> int | None:
    """Return the number that somebody asks for, else that of its run."""
    known = None if newest is None else newest.parallelism
    if record.rescaled is not None:
        return record.rescaled.parallelism
    try:
        return record.manifest.model.parallelism or known
    except UserError:  # a manifest that is refused today
        return known


def _failure(error: LifecycleError | None) -> Failure | None:
    if error is None:
        return None
    return Failure(domain=error.domain, message=error.message, hint=error.hint)


def _find_inputs(record: PipelineRecord) -> dict[str, Input]:
    """Return the inputs of the manifest by name."""
    try:
        return {source.name: source for source in record.manifest.model.inputs}
    except UserError:  # one that is refused today
        return {}


def _connectors(
    source: Input, record: PipelineRecord, known: KnownConnectors
) -> tuple[ConnectorDetail, ...]:
    """Return the connectors of an input, with the progress of each."""
    running = record.desired == "running"
    return tuple(
        connector_detail(known.of(record, source.kafka.topic, connector), running=running)
        for connector in source.connectors
    )


def _columns(source: Input) -> tuple[InputColumn, ...]:
    return tuple(
        InputColumn(name=column.name, type=column.type, required=column.required)
        for column in source.list_columns()
    )


def _inputs(
    record: PipelineRecord, ignored: tuple[IgnoredFields, ...], known: KnownConnectors
) -> list[InputDetail]:
    declared = _find_inputs(record)
    by_name = {each.input: each for each in ignored}
    return [
        InputDetail(
            name=source.name,
            topic=source.topic,
            topic_id=source.topic_id,
            partitions=len(source.bases),
            bases={str(partition): base for (_, partition), base in sorted(source.bases.items())},
            format=said.format if said is not None else None,
            columns=_columns(said) if said is not None else (),
            ignored_records=found.records if found is not None else 0,
            warnings=found.warnings if found is not None else (),
            dropped=found.dropped if found is not None else {},
            warned=found.warned if found is not None else {},
            connectors=_connectors(said, record, known) if said is not None else (),
        )
        for source in record.root_inputs().values()
        for found, said in [(by_name.get(source.name), declared.get(source.name))]
    ]


def _stage(stage: StageDefinition, slot: Slot | None, waits: tuple[SinkWait, ...]) -> StageDetail:
    by_sink = {wait.sink: wait for wait in waits if wait.stage == stage.name}
    states = {} if slot is None else slot.sinks
    mine = [states.get(key_of(stage, sink)) for sink in stage.sinks]
    reports = [state.batch for state in mine if state is not None and state.batch is not None]
    done = [batch for batch in reports if batch.batch_id >= 0]
    return StageDetail(
        name=stage.name,
        inputs=tuple(source.name for source in stage.inputs),
        sinks=tuple(_sink(sink, by_sink.get(sink.name)) for sink in stage.sinks),
        last_batch=_last_batch(max(done, key=lambda batch: batch.committed_at)) if done else None,
    )


def _sink(sink: SinkDefinition, wait: SinkWait | None) -> SinkDetail:
    return SinkDetail(
        name=sink.name,
        kind=sink.kind,
        target=sink.target,
        terminal=sink.terminal,
        blocked_by=None if wait is None else wait.blocked_by,
        message=None if wait is None else wait.message,
    )


def _last_batch(batch: BatchReport) -> LastBatch:
    return LastBatch(
        batch=batch.batch_id,
        committed_at=batch.committed_at,
        rows=batch.rows,
        version=batch.version or None,
    )
