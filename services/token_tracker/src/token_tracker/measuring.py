"""Counts what the tracker applies. Takes no decisions."""

from collections.abc import Iterable

from shared import metrics
from shared.events import Commit, Fact, SinkResult
from shared.slots import Progress, SinkState, Slot, sink_key

UNKNOWN = SinkState()


def measure(before: Slot, fact: Fact, after: Slot) -> None:
    kind = "commit" if isinstance(fact.body, Commit) else "definition"
    metrics.count("waybill_facts_applied_total", kind=kind)
    definition = after.definition
    if definition is None:
        return  # its name is not known yet
    if not definition.deleted and isinstance(fact.body, Commit):
        _measure_batch(before, definition.name, fact.body)
    elif definition.deleted and definition != before.definition:
        metrics.forget(definition.name)


def measure_delay(progress: Iterable[Progress], now_ms: int) -> None:
    delay_ms = now_ms - max(step.committed_at for step in progress)
    metrics.observe("waybill_apply_delay_seconds", max(delay_ms, 0) / 1000)


def count_rebuilds(slots: int) -> None:
    metrics.count("waybill_slot_rebuilds_total", slots)


def _measure_batch(before: Slot, pipeline: str, commit: Commit) -> None:
    """Commits are repeated; and one that sets records aside has no inputs and is no batch."""
    for result in commit.sinks:
        known = before.sinks.get(sink_key(commit.stage, result.name), UNKNOWN)
        if commit.sequence <= known.sequence or not commit.inputs:
            continue
        _measure_sink(result, commit.committed_at - commit.started_at, pipeline, commit.stage)


def _measure_sink(result: SinkResult, took_ms: int, pipeline: str, stage: str) -> None:
    sink, rows = result.name, result.batch_rows
    metrics.count("waybill_batches_total", pipeline=pipeline, stage=stage, sink=sink)
    metrics.count("waybill_batch_rows_total", rows, pipeline=pipeline, stage=stage, sink=sink)
    if took_ms > 0:  # a driver that reports what another one wrote does not know
        metrics.observe(
            "waybill_batch_seconds", took_ms / 1000, pipeline=pipeline, stage=stage, sink=sink
        )
