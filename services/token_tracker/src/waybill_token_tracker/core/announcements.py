"""Decides which events other programs receive in `waybill.status` for facts and phases.

Drivers repeat each fact, less and less often. The id of an event follows from its content, so the
same fact always gives the same event.
"""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Final

from pydantic import JsonValue

from waybill_shared.contract.dead_letter_facts import DeadLetters
from waybill_shared.contract.dead_letters import LetterId
from waybill_shared.contract.driver_news import TableMaintenance
from waybill_shared.contract.events import Commit, Fact
from waybill_shared.contract.lifecycle_events import Condition, LifecycleEvent
from waybill_shared.contract.moments import format_moment
from waybill_shared.contract.run_words import DegradedCause
from waybill_shared.contract.slots import key_of_commit, key_of_letters
from waybill_shared.contract.status_events import (
    BatchRange,
    DeadLetterData,
    PipelinePhaseData,
    StageCommittedData,
    StageFailedData,
    StatusEvent,
    TableMaintainedData,
    TableNotMaintainedData,
    data_of,
)
from waybill_shared.contract.words import EventType

RANGES_MAX: Final = 100  # in one event; outcomes of tokens say where each record is
LETTERS_MAX: Final = 100  # ids in one event; `waybill dlq list` has all
TRANSITION: Final = "transition"
HEARTBEAT: Final = "heartbeat"
OLD_MS: Final = 24 * 3_600_000


def id_of(message: Fact | LifecycleEvent) -> str | None:
    """Return the id of the event for a message; None if no event is made of it."""
    uid = message.pipeline_uid
    if isinstance(message, LifecycleEvent):
        return _id_of_lifecycle(message)
    match message.body:
        case Commit() as commit:
            sink = key_of_commit(commit).replace("/", ".", 1)  # the same under each name
            return f"commit.{uid}.{sink}.{commit.batch.lineage}.{commit.batch.sequence}"
        case DeadLetters() as dead:
            return f"dead.{uid}.{key_of_letters(dead)}.{dead.sequence}"
    return None


def _id_of_lifecycle(event: LifecycleEvent) -> str | None:
    uid, at = event.pipeline_uid, event.at
    if event.maintenance is not None:
        done = event.maintenance
        return f"maintenance.{uid}.{done.stage}.{done.sink}.{done.task}.{at}"
    if (failed := _newest_failed(event)) is not None:
        return f"stage_failed.{uid}.{failed.stage}.{failed.since}"
    phase_id = f"phase.{uid}.{event.generation}.{at}.{event.phase}"
    return phase_id if event.kind == TRANSITION else None


def _newest_failed(event: LifecycleEvent) -> Condition | None:
    """Return the stage that has failed last, if the event may be the first that says so.

    A heartbeat is sent when a stage fails. Later ones say the same again: that is the same event.
    """
    failed = [each for each in event.conditions if each.cause == DegradedCause.STAGE_FAILED]
    if event.kind != HEARTBEAT or not failed:
        return None
    return max(failed, key=lambda each: each.since)


def is_old(fact: Fact) -> bool:
    """Return True if a commit is repeated so late that no event is sent, even if this process sent
    none."""
    return isinstance(fact.body, Commit) and fact.at - fact.body.batch.committed_at > OLD_MS


def of_fact(fact: Fact, *, id: str, pipeline: str | None, source: str) -> Iterator[StatusEvent]:
    """Yield the event for a commit or for dead letters. `pipeline` is the name; None if nobody
    knows it any more."""
    shown = pipeline or fact.pipeline_uid
    match fact.body:
        case Commit() as commit:
            kind, at, data = (
                EventType.STAGE_COMMITTED,
                commit.batch.committed_at,
                _describe_commit(fact, commit),
            )
            stage, subject = commit.stage, f"{shown}/{commit.stage}/{commit.sink}"
        case DeadLetters() as dead:
            kind, at = EventType.DEAD_LETTER, fact.at
            data = _died(fact, dead)
            stage, subject = dead.stage, f"{shown}/{dead.stage}"
        case _:
            return
    yield StatusEvent(
        id=id,
        source=source,
        type=kind,
        subject=subject,
        time=format_moment(at),
        tenant=fact.tenant,
        pipeline=pipeline,
        stage=stage,
        data=data,
    )


def _describe_commit(fact: Fact, commit: Commit) -> dict[str, JsonValue]:
    return data_of(
        StageCommittedData(
            pipeline_uid=fact.pipeline_uid,
            generation=fact.generation,
            sink=commit.sink,
            batch=commit.batch.batch_id,
            rows=commit.batch.rows,
            started_at=format_moment(commit.batch.started_at),
            version=commit.batch.version,
            ranges=[
                BatchRange(
                    topic=each.topic, partition=each.partition, start=each.start, end=each.end
                )
                for each in commit.inputs[:RANGES_MAX]
            ],
        )
    )


def _died(fact: Fact, dead: DeadLetters) -> dict[str, JsonValue]:
    ids = [
        LetterId(
            topic=each.dead_topic,
            partition=each.dead_partition,
            offset=each.dead_offset,
            source=each.offset,
        )
        for each in dead.letters[:LETTERS_MAX]
    ]
    return data_of(
        DeadLetterData(
            pipeline_uid=fact.pipeline_uid,
            generation=fact.generation,
            count=len(dead.letters),
            reasons=sorted({str(each.reason) for each in dead.letters}),
            letters=[*map(str, ids)],
        )
    )


def of_lifecycle(event: LifecycleEvent, *, id: str, source: str) -> Iterator[StatusEvent]:
    """Yield the event for a change of phase, for a stage that has failed by itself, or for the
    result of a task of a table. Claims, and what a driver waits for, are in answers of the status
    service only."""
    stage: str | None = None
    at = event.at
    if event.maintenance is not None:
        done = event.maintenance
        kind, data = _maintenance(event, done)
        stage, subject = done.stage, f"{event.pipeline}/{done.stage}/{done.sink}"
    elif (failed := _newest_failed(event)) is not None:
        kind, stage, at = EventType.STAGE_FAILED, failed.stage, failed.since
        subject, data = f"{event.pipeline}/{failed.stage}", _describe_failed(event, failed)
    elif event.kind == TRANSITION:
        kind = EventType.PIPELINE_PHASE
        subject, data = event.pipeline, _phase(event)
    else:
        return
    yield StatusEvent(
        id=id,
        source=source,
        type=kind,
        subject=subject,
        time=format_moment(at),
        tenant=event.tenant,
        pipeline=event.pipeline,
        stage=stage,
        data=data,
    )


def _describe_failed(event: LifecycleEvent, failed: Condition) -> dict[str, JsonValue]:
    return data_of(
        StageFailedData(
            pipeline_uid=event.pipeline_uid,
            generation=event.generation,
            message=failed.message,
            hint=failed.hint,
        )
    )


def _phase(event: LifecycleEvent) -> dict[str, JsonValue]:
    return data_of(
        PipelinePhaseData(
            pipeline_uid=event.pipeline_uid,
            generation=event.generation,
            phase_from=event.phase_from,
            phase=event.phase,
            reason=event.reason,
            actor=event.actor,
            error=None if event.error is None else asdict(event.error),
        )
    )


def _maintenance(
    event: LifecycleEvent, maintenance: TableMaintenance
) -> tuple[EventType, dict[str, JsonValue]]:
    if maintenance.problem is not None:
        failed = TableNotMaintainedData(
            pipeline_uid=event.pipeline_uid,
            generation=event.generation,
            sink=maintenance.sink,
            task=maintenance.task,
            problem=maintenance.problem,
        )
        return EventType.TABLE_NOT_MAINTAINED, data_of(failed)
    done = TableMaintainedData(
        pipeline_uid=event.pipeline_uid,
        generation=event.generation,
        sink=maintenance.sink,
        task=maintenance.task,
        done=maintenance.done,
    )
    return EventType.TABLE_MAINTAINED, data_of(done)
