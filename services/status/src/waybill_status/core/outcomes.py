"""What a token's status can say: as values, which answers show as they are, and put together from
judged claims."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from waybill_shared.contract.events import SinkWait
from waybill_shared.contract.moments import Moment
from waybill_shared.contract.slots import Progress
from waybill_shared.contract.tokens import Token
from waybill_shared.contract.vectors import Span, Vector, merge_spans
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
from waybill_status.core.views import PipelineKey

FINAL: Final = frozenset({OutcomeKind.COMPLETE, OutcomeKind.DEAD_LETTERED, OutcomeKind.LOST})
# Of several parts the first of these that one of them has: a loss stays a loss whatever else
# is unknown, and nothing is called in progress or complete while a part of it is unknown.
PRECEDENCE: Final = (
    OutcomeKind.LOST,
    OutcomeKind.UNKNOWN,
    OutcomeKind.IN_PROGRESS,
    OutcomeKind.DEAD_LETTERED,
    OutcomeKind.COMPLETE,
)


def _silent(value: object) -> bool:
    """Whether a member is left out of an answer: it has nothing to say."""
    return value is None


@dataclass(frozen=True, slots=True, kw_only=True)
class LostSpan:
    reason: str = field(metadata={"description": meanings(LossReason)})
    topic: str
    partition: int
    start: int
    end: int = field(metadata={"description": "exclusive"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkJudgement:
    """`vacuous`: all that is wanted lies before the base, so no batch ever brought it.

    `lost`: some of it never comes here, so that covering it says little. `removed`: the pipeline
    has this sink no longer. `coming`: what is still to come.
    """

    key: str
    name: str
    required: bool
    wanted: Vector
    covered: bool
    vacuous: bool
    lost: bool = False
    removed: bool = False
    coming: tuple[Span, ...] = ()
    wait: SinkWait | None = None

    @property
    def behind(self) -> int:
        return sum(span.end - span.start for span in self.coming)

    @property
    def brought(self) -> bool:
        """Whether some batch has brought the last of it."""
        return self.covered and not self.vacuous and not self.lost

    @property
    def state(self) -> StateInSink:
        if self.removed:
            return StateInSink.REMOVED
        if self.lost:
            return StateInSink.LOST
        return StateInSink.COMMITTED if self.covered else StateInSink.WAITING


@dataclass(frozen=True, slots=True, kw_only=True)
class StageJudgement:
    name: str
    blocked_by: str | None
    sinks: tuple[SinkJudgement, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The outcome of a token in one pipeline, without the batches that made it."""

    pipeline: PipelineKey
    name: str
    kind: OutcomeKind
    reason: UnknownReason | None = None
    stages: tuple[StageJudgement, ...] = ()
    lost: tuple[LostSpan, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOutcome:
    name: str
    state: StateInSink
    batch_rows: int | None
    behind: int = field(metadata={"description": "records of the token still to come"})
    version: Mapping[str, str] | None = field(
        metadata={"description": "from which the data is visible"}
    )
    detail: BatchDetail | None = field(metadata={"exclude_if": _silent})
    blocked_by: str | None = field(metadata={"exclude_if": _silent})
    message: str | None = field(
        metadata={"description": "what the sink said", "exclude_if": _silent}
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StageOutcome:
    stage: str
    state: StateInStage
    batch: int | None
    committed_at: Moment | None
    blocked_by: str | None = field(metadata={"description": meanings(Obstacle)})
    sinks: tuple[SinkOutcome, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartOutcome:
    """One pipeline of a token that has several."""

    pipeline: str
    outcome: OutcomeKind
    completed_at: Moment | None
    stages: tuple[StageOutcome, ...]
    lost: tuple[LostSpan, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    outcome: OutcomeKind
    reason: UnknownReason | None = field(metadata={"exclude_if": _silent})
    pipeline: str | None
    accepted: int | None = field(
        metadata={"description": "records; null for a token that says only up to where"}
    )
    issued_at: Moment
    completed_at: Moment | None
    stages: tuple[StageOutcome, ...]
    dead: tuple[Mapping[str, object], ...] = ()
    dropped: tuple[Mapping[str, object], ...] = ()
    lost: tuple[LostSpan, ...]
    eta_s: float | None = None
    parts: tuple[PartOutcome, ...] | None = field(metadata={"exclude_if": _silent})

    @property
    def final(self) -> bool:
        return self.outcome in FINAL


Batches = Mapping[tuple[PipelineKey, str], Progress | None]
"""By pipeline and sink: the batch that brought the last of the token there; None if forgotten."""


def kind_of(judgements: Sequence[Judgement]) -> OutcomeKind:
    """Of several inputs or pipelines."""
    kinds = {judgement.kind for judgement in judgements}
    return next(kind for kind in PRECEDENCE if kind in kinds)


def describe(token: Token, judgements: Sequence[Judgement], batches: Batches) -> Outcome:
    kind = kind_of(judgements)
    parts = tuple(_part(judgement, batches) for judgement in judgements)
    moments = [part.completed_at for part in parts]
    known = [moment for moment in moments if moment is not None]
    done = kind == OutcomeKind.COMPLETE and len(known) == len(moments)
    reasons = (judgement.reason for judgement in judgements if judgement.kind == kind)
    return Outcome(
        outcome=kind,
        reason=next(reasons),
        pipeline=parts[0].pipeline if len(parts) == 1 else None,
        accepted=count_accepted(token),
        issued_at=token.issued_at,
        completed_at=max(known) if done else None,
        stages=tuple(stage for part in parts for stage in part.stages),
        lost=tuple(lost for part in parts for lost in part.lost),
        parts=parts if len(parts) > 1 else None,
    )


def unknown(token: Token, reason: UnknownReason, pipeline: str | None = None) -> Outcome:
    return Outcome(
        outcome=OutcomeKind.UNKNOWN,
        reason=reason,
        pipeline=pipeline,
        accepted=count_accepted(token),
        issued_at=token.issued_at,
        completed_at=None,
        stages=(),
        lost=(),
        parts=None,
    )


def count_accepted(token: Token) -> int | None:
    """How many records the token is for; None where it only says from where to where."""
    if not all(part.counted for part in token.parts):
        return None
    spans = merge_spans(span for part in token.parts for span in part.spans)
    return sum(span.end - span.start for span in spans)


def _part(judgement: Judgement, batches: Batches) -> PartOutcome:
    stages = tuple(_stage(stage, judgement.pipeline, batches) for stage in judgement.stages)
    moments: list[int] = []
    missing = judgement.kind != OutcomeKind.COMPLETE
    for sink in (sink for stage in judgement.stages for sink in stage.sinks if sink.required):
        batch = batches.get((judgement.pipeline, sink.key))
        if batch is None:
            missing = missing or not sink.vacuous
        else:
            moments.append(batch.committed_at)
    return PartOutcome(
        pipeline=judgement.name,
        outcome=judgement.kind,
        completed_at=None if missing else max(moments, default=None),
        stages=stages,
        lost=judgement.lost,
    )


def _stage(stage: StageJudgement, pipeline: PipelineKey, batches: Batches) -> StageOutcome:
    lost = any(sink.lost for sink in stage.sinks)
    done = not lost and all(sink.covered or sink.removed for sink in stage.sinks)
    made = [batches.get((pipeline, sink.key)) for sink in stage.sinks]
    known = [batch for batch in made if batch is not None]
    last = max(known, key=lambda b: b.committed_at) if done and len(known) == len(made) else None
    return StageOutcome(
        stage=stage.name,
        state=_state(stage, lost=lost, done=done),
        batch=None if last is None else last.batch_id,
        committed_at=None if last is None else last.committed_at,
        blocked_by=None if done or lost else stage.blocked_by,
        sinks=tuple(_sink(sink, batch) for sink, batch in zip(stage.sinks, made, strict=True)),
    )


def _state(stage: StageJudgement, *, lost: bool, done: bool) -> StateInStage:
    if all(sink.removed for sink in stage.sinks):
        return StateInStage.REMOVED
    if lost or done:
        return StateInStage.LOST if lost else StateInStage.DONE
    return StateInStage.WAITING if stage.blocked_by is None else StateInStage.BLOCKED


def _sink(sink: SinkJudgement, batch: Progress | None) -> SinkOutcome:
    return SinkOutcome(
        name=sink.name,
        state=sink.state,
        batch_rows=None if batch is None else batch.batch_rows,
        behind=sink.behind,
        version=(batch.version or None) if batch is not None else None,
        detail=BatchDetail.EXPIRED if sink.brought and batch is None else None,
        blocked_by=None if sink.wait is None else sink.wait.blocked_by,
        message=None if sink.wait is None else sink.wait.message,
    )
