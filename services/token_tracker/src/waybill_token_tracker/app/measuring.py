"""Counts what the tracker applies, and shows the positions of its sinks. Decides nothing."""

from collections.abc import Iterable
from typing import Final

from waybill_shared.contract.dead_letter_facts import DeadLetters
from waybill_shared.contract.events import Commit, Definition, Fact
from waybill_shared.contract.slots import (
    Progress,
    SinkState,
    Slot,
    key_of_commit,
    key_of_letters,
    stage_key,
)
from waybill_shared.contract.topology import Topology
from waybill_shared.process import metrics
from waybill_token_tracker.app.ports import Ends
from waybill_token_tracker.core.dead_letters import was_received
from waybill_token_tracker.core.lag_positions import LagPosition, SinkLag, count_unread

KINDS: Final = {Commit: "commit", Definition: "definition", DeadLetters: "dead_letters"}
"""Kinds of facts, as values of a label."""


def measure(before: Slot, fact: Fact, after: Slot) -> None:
    metrics.count("waybill_facts_applied_total", kind=KINDS[type(fact.body)])
    definition = after.definition
    if definition is None:
        return
    if before.definition is not None and before.definition.name != definition.name:
        metrics.forget(before.definition.name)
    if definition is not before.definition and _sinks(before.definition) - _sinks(definition):
        metrics.forget(definition.name)  # those that stay count from 0 again
    if isinstance(fact.body, Commit) and fact.body.inputs:  # else it only sets records aside
        _measure_batch(before, fact.body, definition)
    if isinstance(fact.body, DeadLetters):
        _measure_dead(before, fact.body, definition)


def measure_delay(progress: Iterable[Progress], now_ms: int) -> None:
    delay_ms = now_ms - max(step.batch.committed_at for step in progress)
    metrics.observe("waybill_apply_delay_seconds", max(delay_ms, 0) / 1000)


def count_beat() -> None:
    metrics.count("waybill_facts_applied_total", kind="beat")


def count_lost_slot() -> None:
    metrics.count("waybill_slot_rebuilds_total")


def count_skipped(topic: str) -> None:
    metrics.count("waybill_messages_skipped_total", topic=topic)


def count_retry() -> None:
    metrics.count("waybill_loop_retries_total")


def show_sinks(found: Iterable[LagPosition]) -> None:
    metrics.show("waybill_last_commit_timestamp_seconds", _list_positions(found))
    metrics.show("waybill_set_aside_ranges", _set_aside(found))


def show_lags(found: Iterable[LagPosition], ends: Ends) -> None:
    metrics.show("waybill_lag_offsets", _lags(found, ends))


def show_no_lag() -> None:
    """Remove the lag from the metrics, because an old number would look like a current one."""
    metrics.show("waybill_lag_offsets", {})
    metrics.count("waybill_lag_failures_total")


def count_group_failures(count: int) -> None:
    metrics.count("waybill_group_failures_total", count)


def _measure_batch(before: Slot, commit: Commit, definition: Definition) -> None:
    key = key_of_commit(commit)
    known = before.sinks.get(key, SinkState()).batch
    batch = commit.batch
    if key not in _sinks(definition) or (known is not None and batch.sequence <= known.sequence):
        return
    labels = {"pipeline": definition.name, "stage": commit.stage, "sink": commit.sink}
    metrics.count("waybill_batches_total", 1, **labels)
    metrics.count("waybill_batch_rows_total", batch.rows, **labels)
    took_s = (batch.committed_at - batch.started_at) / 1000
    if took_s > 0:  # a driver that reports the batch of another one does not know its start
        metrics.observe("waybill_batch_seconds", took_s, **labels)


def _measure_dead(before: Slot, letters: DeadLetters, definition: Definition) -> None:
    key = key_of_letters(letters)
    present = not definition.deleted and key in map(stage_key, definition.stages)
    if not present or was_received(before, letters):
        return
    for letter in letters.letters:
        labels = {"pipeline": definition.name, "stage": letters.stage, "reason": letter.reason}
        metrics.count("waybill_dead_letters_total", 1, **labels)


def _sinks(definition: Definition | None) -> set[str]:
    """Return the keys of all sinks of a pipeline that is not deleted."""
    if definition is None or definition.deleted:
        return set()
    return {each.key for each in Topology(definition.stages).sinks}


def _each(
    found: Iterable[LagPosition],
) -> Iterable[tuple[tuple[str, str, str], LagPosition, SinkLag]]:
    for stage in found:
        for sink in stage.sinks:
            yield (stage.pipeline, stage.stage, sink.name), stage, sink


def _lags(found: Iterable[LagPosition], ends: Ends) -> dict[tuple[str, ...], float]:
    """Return the lag of sinks if all their topics answer: part of a lag would look too good."""
    return {
        labels: sum(count_unread(sink.position, topic_id, ends[topic_id]) for topic_id in topic_ids)
        for labels, stage, sink in _each(found)
        for topic_ids in [stage.topics.values()]
        if ends.keys() >= set(topic_ids)
    }


def _list_positions(found: Iterable[LagPosition]) -> dict[tuple[str, ...], float]:
    return {
        labels: sink.state.batch.committed_at / 1000
        for labels, _, sink in _each(found)
        if sink.state.batch is not None
    }


def _set_aside(found: Iterable[LagPosition]) -> dict[tuple[str, ...], float]:
    return {
        (*labels, reason): len(spans)
        for labels, _, sink in _each(found)
        for reason, spans in sink.state.set_aside.items()
    }
