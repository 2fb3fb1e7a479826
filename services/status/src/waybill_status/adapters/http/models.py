"""The types of HTTP bodies, in addition to the values of `core`."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from waybill_shared.contract.moments import Moment
from waybill_shared.contract.run_words import RunEnd
from waybill_shared.contract.status_events import StatusEvent
from waybill_shared.contract.token_views import ALL, WantedView
from waybill_shared.contract.watch_details import WatchDetail
from waybill_shared.contract.word import meanings
from waybill_shared.contract.words import HistoryGap
from waybill_shared.http.examples import with_example
from waybill_shared.http.operations import ACTOR
from waybill_status.core.dead_letters.dead_letter_view import DeadLetterSummary
from waybill_status.core.outcomes.outcome import Outcome
from waybill_status.core.pipelines.answers import (
    SQL_GUARD,
    Failure,
    GenerationManifest,
    PipelineSummary,
)
from waybill_status.core.pipelines.batches import StageBatch


class _Answer(BaseModel):
    model_config = ConfigDict(from_attributes=True)


class TokenError(BaseModel):
    error: dict[str, Any] = Field(description="a problem, as RFC 9457 has it")


class QueryAnswer(BaseModel):
    outcomes: list[Outcome | TokenError]


class QueryBody(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    tokens: list[str]
    view: WantedView = ALL


class PipelinesAnswer(BaseModel):
    model_config = with_example("status/pipelines")

    items: list[PipelineSummary]
    next_cursor: str | None = None


class ManifestsAnswer(BaseModel):
    items: list[GenerationManifest] = Field(description="newest first")


class DeadLettersAnswer(BaseModel):
    items: list[DeadLetterSummary] = Field(description="newest first")
    next_cursor: str | None = None


class WatchesAnswer(BaseModel):
    items: list[WatchDetail] = Field(description="newest first")
    next_cursor: str | None = None


class StatusEventsAnswer(BaseModel):
    items: list[StatusEvent] = Field(description="oldest first")
    position: str = Field(description="for Last-Event-ID: after all of them")


class EventQuery(BaseModel):
    type: list[str] = Field(default=[], description="one of these types")
    pipeline: str | None = None
    stage: str | None = None
    watch: str | None = None
    label: list[str] = Field(default=[], description="NAME=VALUE of a watch, all of these")


class MaintainedTable(_Answer):
    stage: str
    sink: str
    task: str = Field(description="by its key in the manifest")
    done: dict[str, int] = Field(description="in numbers, such as files and bytes")
    problem: str | None = Field(description="why nothing was done; it is tried again later")


class EventCondition(_Answer):
    kind: str = Field(description="degraded")
    stage: str | None
    cause: str
    since: Moment
    message: str | None = Field(description="what has happened, if the cause alone does not say it")


class EventAnswer(_Answer):
    id: str = Field(description="for `after` and Last-Event-ID")
    at: Moment
    kind: str = Field(
        description="claim | transition | blocked | degraded | maintenance | schedule"
    )
    generation: int
    phase_from: str | None
    phase: str
    reason: str
    actor: str = Field(description=f"{ACTOR}; schedule for what its time does; else stage_runner")
    blocked_by: str | None
    conditions: list[EventCondition] = Field(
        default=[], description="what is wrong with it next to its phase"
    )
    maintenance: MaintainedTable | None = Field(
        description="of kind `maintenance`: a task has kept a table in order, or could not"
    )
    error: Failure | None
    attempt: int
    next_attempt_at: Moment | None
    escalates_at: Moment | None = Field(description="when the stop becomes a stronger one")
    next_run_at: Moment | None = Field(description="when its schedule begins the next run")
    run: int = Field(description="the number of the run; 0: it never ran")
    sql_guard: str = Field(description=SQL_GUARD)


GAP = f"why events before the first may be missing:\n{meanings(HistoryGap)}"


class EventsAnswer(_Answer):
    model_config = with_example("status/events")

    items: list[EventAnswer] = Field(description="oldest first")
    next_cursor: str | None = Field(
        default=None, description="of the next page; null if there is none now"
    )
    gap: str | None = Field(default=None, description=GAP)


class BatchesAnswer(_Answer):
    model_config = with_example("status/batches")

    items: list[StageBatch] = Field(description="oldest first")
    next_cursor: str | None = Field(
        default=None, description="of the next page; null if there is none now"
    )
    gap: str | None = Field(default=None, description=GAP)


class RunFailure(_Answer):
    domain: str = Field(description="user | external | internal")
    message: str
    hint: str
    stage: str | None
    sink: str | None


RUN_COUNTS = (
    "that ended well, as its driver has last reported (every 2 s, and at its end); while it goes on"
    " as of its newest change of phase; null: not known"
)


class RunAnswer(_Answer):
    id: str = Field(description="for `after`")
    run: int
    generation: int
    began: Moment | None = Field(description="null: before what is kept")
    started_by: str | None = Field(
        description=f"{ACTOR}; stage_runner for what nobody asked for; null: as `began`"
    )
    attempt: int = Field(description="starts that had failed in a row before it")
    parallelism: int | None = Field(description="how many of its tasks ran at once")
    phase: str = Field(description="its newest one")
    ended: Moment | None = Field(description="null: it goes on, or `end` is `taken_over`")
    end: RunEnd | None = Field(description=f"null: it goes on\n{meanings(RunEnd)}")
    reason: str | None = Field(description="of its end, in words for people")
    ended_by: str | None = Field(description="who asked for its end; stage_runner: nobody did")
    error: RunFailure | None
    batches: int | None = Field(description=RUN_COUNTS)
    rows: int | None = Field(description="that its sinks got, each sink counted; as `batches`")


class RunsAnswer(_Answer):
    model_config = with_example("status/runs")

    items: list[RunAnswer] = Field(description="oldest first")
    next_cursor: str | None = Field(
        default=None, description="of the next page; null if there is none now"
    )
    gap: str | None = Field(default=None, description=GAP)
