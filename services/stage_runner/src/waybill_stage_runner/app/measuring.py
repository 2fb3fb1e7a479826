"""Exports metrics of the pipelines of this runner and counts what it does. Makes no decisions."""

from collections import Counter
from collections.abc import Iterable

from waybill_shared.contract.lifecycle import Phase
from waybill_shared.process import metrics
from waybill_stage_runner.core.pipelines.actions import Answer
from waybill_stage_runner.core.pipelines.states import PipelineState
from waybill_stage_runner.core.pool.model import Driver, DriverState


def show(states: Iterable[PipelineState]) -> None:
    """Export the metrics of all pipelines. Those that are not among `states` disappear."""
    shown = list(states)
    metrics.gauge("waybill_pipelines", len(shown))
    metrics.show(
        "waybill_pipeline_phase", {(s.record.name, str(s.phase), _fault(s)): 1 for s in shown}
    )
    metrics.show("waybill_driver_attempts", {(s.record.name,): s.attempt for s in shown})
    metrics.show(
        "waybill_pipeline_blocked",
        {(s.record.name, word): 1 for s in shown for word in _obstacles(s)},
    )
    _show_conditions(shown)


def _show_conditions(states: Iterable[PipelineState]) -> None:
    metrics.show(
        "waybill_pipeline_degraded",
        {(s.record.name, cause): 1 for s in states for cause in s.causes},
    )


def _fault(state: PipelineState) -> str:
    """Return the domain of the error that is the reason of the phase; empty if none is."""
    if state.error is None or state.phase not in (Phase.RECOVERING, Phase.FAILED):
        return ""
    return state.error.domain


def _obstacles(state: PipelineState) -> set[str]:
    waits = {wait.blocked_by for wait in state.waits}
    return waits if state.blocked_by is None else {state.blocked_by, *waits}


def show_drivers(drivers: Iterable[Driver]) -> None:
    counts = Counter(driver.state for driver in drivers)
    metrics.show("waybill_drivers", {(str(state),): counts[state] for state in DriverState})


def measure(before: PipelineState, after: PipelineState) -> None:
    if before.record.name != after.record.name:
        metrics.forget(before.record.name)
    if before.phase is after.phase:
        return
    resumed = before.pause_orders > 0
    if before.phase is Phase.STARTING and after.phase is Phase.RUNNING and not resumed:
        metrics.observe("waybill_driver_start_seconds", (after.since - before.since) / 1000)
    if after.phase in (Phase.RECOVERING, Phase.FAILED) and after.error is not None:
        name, domain = after.record.name, after.error.domain
        metrics.count("waybill_driver_failures_total", pipeline=name, domain=domain)


def forget(pipeline: str) -> None:
    metrics.forget(pipeline)


def show_guard(*, trusted: bool) -> None:
    metrics.gauge("waybill_sql_guard_trusted", int(trusted))


def count_start(pipeline: str, reason: str) -> None:
    metrics.count("waybill_driver_starts_total", pipeline=pipeline, reason=reason)


def count_answer(answer: Answer) -> None:
    metrics.count("waybill_commands_total", action=answer.command.action, state=answer.state)


def count_skipped(topic: str) -> None:
    metrics.count("waybill_messages_skipped_total", topic=topic)


def count_retry() -> None:
    metrics.count("waybill_loop_retries_total")
