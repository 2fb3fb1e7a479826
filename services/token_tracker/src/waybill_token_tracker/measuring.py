"""Counts what the tracker applies. Takes no decisions."""

from collections.abc import Iterable

from waybill_shared.contract.events import Commit, Definition, Fact
from waybill_shared.contract.slots import (
    Progress,
    Slot,
    keys_of,
    sink_key,
)
from waybill_shared.process import metrics


def measure(before: Slot, fact: Fact, after: Slot) -> None:
    kind = "commit" if isinstance(fact.body, Commit) else "definition"
    metrics.count("waybill_facts_applied_total", kind=kind)
    definition = after.definition
    if definition is None:
        return
    if definition is not before.definition and _sinks(before.definition) - _sinks(definition):
        metrics.forget(definition.name)  # those that stay count from 0 again
    if isinstance(fact.body, Commit) and fact.body.inputs:  # what sets records aside is no batch
        _measure_batch(before, fact.body, definition)


def measure_delay(progress: Iterable[Progress], now_ms: int) -> None:
    delay_ms = now_ms - max(step.committed_at for step in progress)
    metrics.observe("waybill_apply_delay_seconds", max(delay_ms, 0) / 1000)


def count_beat() -> None:
    metrics.count("waybill_facts_applied_total", kind="beat")


def count_lost_slot() -> None:
    metrics.count("waybill_slot_rebuilds_total")


def _measure_batch(before: Slot, commit: Commit, definition: Definition) -> None:
    key = sink_key(commit.stage, commit.sink, commit.since)
    known = before.sinks.get(key)
    if key not in _sinks(definition) or (known is not None and commit.sequence <= known.sequence):
        return
    labels = {"pipeline": definition.name, "stage": commit.stage, "sink": commit.sink}
    metrics.count("waybill_batches_total", 1, **labels)
    metrics.count("waybill_batch_rows_total", commit.batch_rows, **labels)
    took_s = (commit.committed_at - commit.started_at) / 1000
    if took_s > 0:  # a driver that reports what another one wrote does not know
        metrics.observe("waybill_batch_seconds", took_s, **labels)


def _sinks(definition: Definition | None) -> set[str]:
    """Of a living pipeline."""
    if definition is None or definition.deleted:
        return set()
    return keys_of(definition.stages)
