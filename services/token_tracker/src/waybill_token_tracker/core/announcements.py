"""What programs of others are told of facts and phases: as events of `waybill.status`.

An event has the id of the message that it tells of, so the same one told again is the same event.
"""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Final

from waybill_shared.contract.dead_letters import LetterId
from waybill_shared.contract.deaths import DeadLetters
from waybill_shared.contract.events import Commit, Fact, LifecycleEvent
from waybill_shared.contract.moments import format_moment
from waybill_shared.contract.status_events import (
    DeadLetterData,
    PipelinePhaseData,
    StageCommittedData,
    StatusEvent,
    data_of,
)
from waybill_shared.contract.words import EventType

LETTERS_MAX: Final = 100  # ids in one event; `waybill dlq list` has all
TRANSITION: Final = "transition"


def of_fact(fact: Fact, *, place: str, pipeline: str | None, source: str) -> Iterator[StatusEvent]:
    """`pipeline`: its name; None if nobody knows it any more."""
    shown = pipeline or fact.pipeline_uid
    match fact.body:
        case Commit() as commit:
            yield StatusEvent(
                id=place,
                source=source,
                type=EventType.STAGE_COMMITTED,
                subject=f"{shown}/{commit.stage}/{commit.sink}",
                time=format_moment(commit.committed_at),
                tenant=fact.tenant,
                pipeline=pipeline,
                stage=commit.stage,
                data=data_of(
                    StageCommittedData(
                        pipeline_uid=fact.pipeline_uid,
                        generation=fact.generation,
                        sink=commit.sink,
                        batch=commit.batch_id,
                        rows=commit.batch_rows,
                        version=commit.version,
                    )
                ),
            )
        case DeadLetters() as dead:
            ids = [
                str(
                    LetterId(
                        topic=each.dead_topic,
                        partition=each.dead_partition,
                        offset=each.dead_offset,
                        source=each.offset,
                    )
                )
                for each in dead.letters[:LETTERS_MAX]
            ]
            yield StatusEvent(
                id=place,
                source=source,
                type=EventType.DEAD_LETTER,
                subject=f"{shown}/{dead.stage}",
                time=format_moment(fact.at),
                tenant=fact.tenant,
                pipeline=pipeline,
                stage=dead.stage,
                data=data_of(
                    DeadLetterData(
                        pipeline_uid=fact.pipeline_uid,
                        generation=fact.generation,
                        count=len(dead.letters),
                        reasons=sorted({str(each.reason) for each in dead.letters}),
                        letters=ids,
                    )
                ),
            )


def of_phase(event: LifecycleEvent, *, place: str, source: str) -> Iterator[StatusEvent]:
    """A change of phase; claims, and what a driver waits for, are told to who asks."""
    if event.kind != TRANSITION:
        return
    yield StatusEvent(
        id=place,
        source=source,
        type=EventType.PIPELINE_PHASE,
        subject=event.pipeline,
        time=format_moment(event.at),
        tenant=event.tenant,
        pipeline=event.pipeline,
        data=data_of(
            PipelinePhaseData(
                pipeline_uid=event.pipeline_uid,
                generation=event.generation,
                phase_from=event.phase_from,
                phase=event.phase,
                reason=event.reason,
                actor=event.actor,
                error=None if event.error is None else asdict(event.error),
            )
        ),
    )
