"""Explains why a pipeline processes nothing, or not as usual, and what to do about it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from waybill_shared.contract.driver_news import SinkWait
from waybill_shared.contract.lifecycle import Phase
from waybill_shared.contract.lifecycle_events import LifecycleError
from waybill_shared.contract.moments import format_moment
from waybill_shared.contract.words import Obstacle
from waybill_status.core.pipelines.conditions import ConditionDetail, sentence_of

OBSTACLES: Final[Mapping[str, tuple[str, str]]] = {
    Obstacle.BLOCKED_BY_OPEN_TRANSACTION: (
        "a producer has an open transaction in a topic that it reads",
        "let its producer commit or abort; left alone it ends after its transaction.timeout.ms",
    ),
    Obstacle.NO_SPARK_EXECUTOR: (
        "the Spark cluster gives it no executor",
        "see on the master's page whether a worker has a free core and the memory that it asks for",
    ),
    Obstacle.COMMITS_NOT_ACCEPTED: (
        "Kafka does not accept what its driver reports of its sinks",
        "the driver's log has Kafka's error: look at the topic of commits, its replicas and grants",
    ),
}
"""By obstacle of a driver: the cause, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stuck:
    cause: str
    hint: str | None = field(metadata={"description": "what to do"})


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineNow:
    """The state of a pipeline at one moment, as far as it is known. `attempt` counts starts that
    failed in a row."""

    name: str
    desired: str
    phase: str
    reason: str | None
    error: LifecycleError | None = None
    blocked_by: str | None = None
    waits: tuple[SinkWait, ...] = ()
    attempt: int = 0
    next_at: int | None = None
    conditions: tuple[ConditionDetail, ...] = ()
    changed: bool = False
    """True if an earlier manifest is kept, which can be applied again."""


def stuck_of(it: PipelineNow) -> Stuck | None:
    """Return the cause and a hint; None if all is well."""
    if it.phase == Phase.UNKNOWN:
        hint = "`waybill doctor` says what is away"
        return Stuck(cause=it.reason or "nothing is known of it", hint=hint)
    if it.error is not None and it.phase not in {Phase.RUNNING, Phase.PAUSED}:
        return Stuck(cause=it.error.message + _again(it), hint=_way_out(it) or None)
    if it.phase in {Phase.STARTING, Phase.RUNNING} and it.blocked_by is not None:
        cause, hint = OBSTACLES.get(it.blocked_by, (it.blocked_by, ""))
        return Stuck(cause=cause, hint=hint or None)
    refusing = next((w for w in it.waits if w.blocked_by == Obstacle.SINK_RETRYING), None)
    if refusing is not None:
        cause = f"sink {refusing.sink} takes nothing now: {refusing.message}"
        return Stuck(cause=cause, hint="it is tried again by itself")
    if it.phase == Phase.RUNNING and it.conditions:
        worst = it.conditions[0]
        return Stuck(cause=sentence_of(worst), hint=worst.hint)
    if it.phase == Phase.STARTING and it.attempt:
        hint = f"`waybill events {it.name}` shows what failed before"
        return Stuck(cause="it starts again", hint=hint)
    if it.phase == Phase.PAUSED:
        return Stuck(cause="it is paused", hint=f"`waybill resume {it.name}` lets it continue")
    if it.phase == Phase.STOPPED and it.desired == "stopped":
        hint = f"`waybill start {it.name}` goes on where it stopped"
        return Stuck(cause="it is stopped", hint=hint)
    return None


def _way_out(it: PipelineNow) -> str:
    """Return the hint of the error, and of a person's error also that the change can be undone."""
    assert it.error is not None
    undo = f"`waybill rollback {it.name}` applies the manifest before this one again"
    ways = (it.error.hint, undo if it.error.domain == "user" and it.changed else "")
    return "; or ".join(way for way in ways if way)


def _again(it: PipelineNow) -> str:
    if it.next_at is None or it.phase == Phase.FAILED:
        return ""
    return f"; attempt {it.attempt + 1} comes at {format_moment(it.next_at)}"
