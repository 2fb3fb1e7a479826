"""Answers of status as types: they turn the values of `core` into JSON and document it."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from waybill_shared.contract.words import (
    BatchDetail,
    LossReason,
    Obstacle,
    OutcomeKind,
    StateInSink,
    StateInStage,
    UnknownReason,
    meanings,
)
from waybill_shared.http.operations import ACTOR, Moment
from waybill_status.adapters.examples import (
    COMPLETE,
    EVENTS,
    PIPELINE,
    PIPELINES,
)

SQL_GUARD = "strict | trusted, which takes any query; by the runner that spoke last"


class _Answer(BaseModel):
    model_config = ConfigDict(from_attributes=True)


def _silent(value: object) -> bool:
    """Whether a member is left out: it has nothing to say."""
    return value is None


class SinkAnswer(_Answer):
    name: str
    state: str = Field(description=meanings(StateInSink))
    batch_rows: int | None
    behind: int = Field(description="records of the token still to come")
    version: dict[str, str] | None = Field(description="from which the data is visible")
    detail: str | None = Field(default=None, exclude_if=_silent, description=meanings(BatchDetail))


class StageAnswer(_Answer):
    stage: str
    state: str = Field(description=meanings(StateInStage))
    batch: int | None
    committed_at: Moment | None
    blocked_by: str | None = Field(description=meanings(Obstacle))
    sinks: list[SinkAnswer]


class LostAnswer(_Answer):
    reason: str = Field(description=meanings(LossReason))
    topic: str
    partition: int
    start: int
    end: int = Field(description="exclusive")


class PartAnswer(_Answer):
    pipeline: str
    outcome: str
    completed_at: Moment | None
    stages: list[StageAnswer]
    lost: list[LostAnswer]


class OutcomeAnswer(_Answer):
    model_config = ConfigDict(from_attributes=True, json_schema_extra={"example": COMPLETE})

    outcome: str = Field(description=meanings(OutcomeKind))
    reason: str | None = Field(
        default=None, exclude_if=_silent, description=meanings(UnknownReason)
    )
    pipeline: str | None
    accepted: int | None = Field(description="records; null for a token that says only up to where")
    issued_at: Moment
    completed_at: Moment | None
    stages: list[StageAnswer]
    dead: list[dict[str, Any]] = Field(default_factory=list)
    dropped: list[dict[str, Any]] = Field(default_factory=list)
    lost: list[LostAnswer]
    eta_s: float | None = None
    parts: list[PartAnswer] | None = Field(default=None, exclude_if=_silent)


class TokenError(BaseModel):
    error: dict[str, Any] = Field(description="a problem, as RFC 9457 has it")


class QueryAnswer(BaseModel):
    outcomes: list[OutcomeAnswer | TokenError]


class QueryBody(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    tokens: list[str]


class SummaryAnswer(_Answer):
    name: str
    uid: str
    generation: int
    desired: str = Field(description="running | stopped")
    phase: str
    reason: str | None
    since: Moment | None


class PipelinesAnswer(BaseModel):
    model_config = ConfigDict(json_schema_extra={"example": PIPELINES})

    items: list[SummaryAnswer]
    next_cursor: str | None = None


class FailureAnswer(_Answer):
    domain: str = Field(description="user | external | internal")
    message: str
    hint: str


class InputAnswer(_Answer):
    name: str
    topic: str
    topic_id: str
    partitions: int
    bases: dict[str, int]


class SinkDetailAnswer(_Answer):
    name: str
    kind: str
    target: str
    terminal: bool


class LastBatchAnswer(_Answer):
    batch: int
    committed_at: Moment
    rows: int
    version: dict[str, str] | None


class StageDetailAnswer(_Answer):
    name: str
    inputs: list[str]
    sinks: list[SinkDetailAnswer]
    last_batch: LastBatchAnswer | None


class NodeAnswer(_Answer):
    id: str
    kind: str = Field(description="input | stage | sink")


class EdgeAnswer(_Answer):
    model_config = ConfigDict(from_attributes=True, serialize_by_alias=True)

    source: str = Field(serialization_alias="from")
    target: str = Field(serialization_alias="to")


class GraphAnswer(_Answer):
    nodes: list[NodeAnswer]
    edges: list[EdgeAnswer]


class PipelineAnswer(SummaryAnswer):
    model_config = ConfigDict(from_attributes=True, json_schema_extra={"example": PIPELINE})

    blocked_by: str | None = Field(description="what its driver waits for")
    attempt: int = Field(description="starts that failed in a row")
    next_attempt_at: Moment | None
    error: FailureAnswer | None
    sql_guard: str | None = Field(description=SQL_GUARD)
    inputs: list[InputAnswer]
    stages: list[StageDetailAnswer]
    graph: GraphAnswer
    manifest: str


class EventAnswer(_Answer):
    id: str = Field(description="for Last-Event-ID")
    at: Moment
    kind: str = Field(description="claim | transition | blocked")
    generation: int
    phase_from: str | None
    phase: str
    reason: str
    actor: str = Field(description=f"{ACTOR}; stage_runner for what nobody asked for")
    blocked_by: str | None
    error: FailureAnswer | None
    attempt: int
    next_attempt_at: Moment | None
    run_id: str
    sql_guard: str = Field(description=SQL_GUARD)


class EventsAnswer(_Answer):
    model_config = ConfigDict(from_attributes=True, json_schema_extra={"example": EVENTS})

    items: list[EventAnswer] = Field(description="oldest first")
