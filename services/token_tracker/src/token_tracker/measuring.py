"""Counts what the tracker applies. Takes no decisions."""

from collections.abc import Iterable

from shared import metrics
from shared.events import Commit, Definition, Fact, SinkResult
from shared.slots import Progress, Slot, sink_key


def measure(before: Slot, fact: Fact, after: Slot) -> None:
    kind = "commit" if isinstance(fact.body, Commit) else "definition"
    metrics.count("waybill_facts_applied_total", kind=kind)
    sinks = _sinks(after.definition)
    if after.definition is not None and _sinks(before.definition) - sinks:
        metrics.forget(after.definition.name)  # those that stay count from 0 again
    if after.definition is not None and isinstance(fact.body, Commit):
        known = {name: state.sequence for name, state in before.sinks.items()}
        for result in fact.body.sinks:
            name = sink_key(fact.body.stage, result.name)
            if name in sinks and fact.body.sequence > known.get(name, -1):
                _measure_batch(result, fact.body, after.definition.name)


def measure_delay(progress: Iterable[Progress], now_ms: int) -> None:
    delay_ms = now_ms - max(step.committed_at for step in progress)
    metrics.observe("waybill_apply_delay_seconds", max(delay_ms, 0) / 1000)


def count_lost_slot() -> None:
    metrics.count("waybill_slot_rebuilds_total")


def _measure_batch(result: SinkResult, commit: Commit, pipeline: str) -> None:
    if not commit.inputs:
        return  # what sets records aside is no batch
    stage, sink, rows = commit.stage, result.name, result.batch_rows
    metrics.count("waybill_batches_total", pipeline=pipeline, stage=stage, sink=sink)
    metrics.count("waybill_batch_rows_total", rows, pipeline=pipeline, stage=stage, sink=sink)
    took_s = (commit.committed_at - commit.started_at) / 1000
    if took_s > 0:  # a driver that reports what another one wrote does not know
        metrics.observe("waybill_batch_seconds", took_s, pipeline=pipeline, stage=stage, sink=sink)


def _sinks(definition: Definition | None) -> set[str]:
    """Of a living pipeline."""
    if definition is None or definition.deleted:
        return set()
    return {sink_key(stage.name, sink.name) for stage in definition.stages for sink in stage.sinks}
