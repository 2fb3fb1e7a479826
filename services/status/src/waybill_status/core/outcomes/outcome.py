"""Makes the outcome of a token from judgements. Answers show these values as they are."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from waybill_shared.contract import words
from waybill_shared.contract.batches import BatchReport
from waybill_shared.contract.moments import Moment
from waybill_shared.contract.tokens import Token
from waybill_shared.contract.vectors import merge_spans
from waybill_shared.contract.word import meanings
from waybill_status.core.outcomes.dead_letters import ENTRIES_MAX, Dead, Dropped, place_of
from waybill_status.core.outcomes.judgements import (
    ARRIVED,
    FINAL,
    Judgement,
    LostSpan,
    SinkJudgement,
    StageJudgement,
    kind_of,
)
from waybill_status.core.outcomes.views import PipelineKey

_DEAD_COUNT: Final = "records of the token in dead-letter topics; at most so many"
_REWINDING: Final = (
    "true: its stage reads records again, so it may show older rows; null: nobody knows that now"
)
_TRUNCATED: Final = (
    "`dead` does not show all; `dead_count` counts them, but no more than 10,000 entries"
)


def _silent(value: object) -> bool:
    """Return True if a member is left out of an answer, because it has no value."""
    return value is None


def _as_usual(value: object) -> bool:
    return value == words.Guarantee.ONCE


def _untrue(value: object) -> bool:
    return value is False


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOutcome:
    name: str
    state: words.StateInSink
    batch_rows: int | None
    read_at: Moment | None = field(
        metadata={"description": "when its batch began", "exclude_if": _silent}
    )
    committed_at: Moment | None = field(
        metadata={"description": "since when it can be seen", "exclude_if": _silent}
    )
    behind: int = field(metadata={"description": "records of the token still to come"})
    version: Mapping[str, str] | None = field(
        metadata={"description": "from which the data is visible"}
    )
    detail: words.BatchDetail | None = field(metadata={"exclude_if": _silent})
    blocked_by: str | None = field(metadata={"exclude_if": _silent})
    message: str | None = field(
        metadata={"description": "what the sink said", "exclude_if": _silent}
    )
    rewinding: bool | None = field(
        default=False, metadata={"description": _REWINDING, "exclude_if": _untrue}
    )
    guarantee: str = field(
        default=words.Guarantee.ONCE,
        metadata={"description": meanings(words.Guarantee), "exclude_if": _as_usual},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StageOutcome:
    stage: str
    state: words.StateInStage
    batch: int | None
    committed_at: Moment | None
    blocked_by: str | None = field(metadata={"description": meanings(words.Obstacle)})
    next_run_at: Moment | None = field(
        default=None,
        metadata={"description": "of `not_running`, with a schedule", "exclude_if": _silent},
    )
    sinks: tuple[SinkOutcome, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartOutcome:
    """One pipeline of a token that has several."""

    pipeline: str
    outcome: words.OutcomeKind
    completed_at: Moment | None
    stages: tuple[StageOutcome, ...]
    dead: tuple[Dead, ...] = ()
    dead_count: int = field(default=0, metadata={"description": _DEAD_COUNT})
    dropped: tuple[Dropped, ...] = ()
    lost: tuple[LostSpan, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    outcome: words.OutcomeKind
    reason: words.UnknownReason | None = field(metadata={"exclude_if": _silent})
    pipeline: str | None
    accepted: int | None = field(
        metadata={"description": "records; null for a token that says only up to where"}
    )
    issued_at: Moment
    completed_at: Moment | None
    stages: tuple[StageOutcome, ...]
    dead: tuple[Dead, ...] = field(
        default=(), metadata={"description": "in the order of topic, partition and offset"}
    )
    dead_count: int = field(default=0, metadata={"description": _DEAD_COUNT})
    dead_truncated: bool = field(
        default=False, metadata={"description": _TRUNCATED, "exclude_if": _untrue}
    )
    dropped: tuple[Dropped, ...] = ()
    lost: tuple[LostSpan, ...]
    eta_s: float | None = None
    parts: tuple[PartOutcome, ...] | None = field(metadata={"exclude_if": _silent})

    @property
    def final(self) -> bool:
        return self.outcome in FINAL


Batches = Mapping[tuple[PipelineKey, str], BatchReport | None]
"""By pipeline and sink: the batch that wrote the last record of the token there; None if
forgotten."""


def describe(token: Token, judgements: Sequence[Judgement], batches: Batches) -> Outcome:
    kind = kind_of(judgements)
    accepted = count_accepted(token)
    most = None if any(judgement.beyond for judgement in judgements) else accepted
    parts = tuple(_part(judgement, batches, most) for judgement in judgements)
    moments = [part.completed_at for part in parts if part.stages]
    known = [moment for moment in moments if moment is not None]
    done = kind in ARRIVED and len(known) == len(moments)
    reasons = (judgement.reason for judgement in judgements if judgement.kind == kind)
    dead = sum(part.dead_count for part in parts)
    outcome = Outcome(
        outcome=kind,
        reason=next(reasons),
        pipeline=parts[0].pipeline if len(parts) == 1 else None,
        accepted=accepted,
        issued_at=token.issued_at,
        completed_at=max(known, default=None) if done else None,
        stages=tuple(stage for part in parts for stage in part.stages),
        dead=tuple(sorted((dead for part in parts for dead in part.dead), key=place_of)),
        dead_count=dead if most is None else min(dead, most),
        dead_truncated=any(judgement.dead_records.cut for judgement in judgements),
        dropped=tuple(dropped for part in parts for dropped in part.dropped),
        lost=tuple(lost for part in parts for lost in part.lost),
        parts=parts if len(parts) > 1 else None,
    )
    return with_less_dead(outcome, ENTRIES_MAX)


def with_less_dead(outcome: Outcome, most: int) -> Outcome:
    """Return the outcome with the first of its dead letters. Its counts stay the same."""
    if len(outcome.dead) <= most:
        return outcome
    kept = outcome.dead[:most]
    parts = outcome.parts and tuple(
        replace(part, dead=_among(part.dead, kept)) for part in outcome.parts
    )
    return replace(outcome, dead=kept, dead_truncated=True, parts=parts)


def _among(dead: Iterable[Dead], kept: Iterable[Dead]) -> tuple[Dead, ...]:
    known = set(kept)
    return tuple(each for each in dead if each in known)


def unknown(token: Token, reason: words.UnknownReason, pipeline: str | None = None) -> Outcome:
    return Outcome(
        outcome=words.OutcomeKind.UNKNOWN,
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
    """Return how many records the token is for; None if it only says from where to where."""
    if not all(part.counted for part in token.parts):
        return None
    spans = merge_spans(span for part in token.parts for span in part.spans)
    return sum(span.end - span.start for span in spans)


def _part(judgement: Judgement, batches: Batches, most: int | None) -> PartOutcome:
    """Return the outcome in one pipeline. `most`: the largest number of records, if known."""
    stages = tuple(_stage(stage, judgement.pipeline, batches) for stage in judgement.stages)
    moments: list[int] = []
    missing = judgement.kind not in ARRIVED
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
        dead=judgement.dead_records.found,
        dead_count=judgement.dead_records.count,
        dropped=tuple(
            each if most is None else replace(each, up_to=min(each.up_to, most))
            for each in judgement.dropped
        ),
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
        next_run_at=None if done or lost else stage.next_run_at,
        sinks=tuple(_sink(sink, batch) for sink, batch in zip(stage.sinks, made, strict=True)),
    )


def _state(stage: StageJudgement, *, lost: bool, done: bool) -> words.StateInStage:
    if all(sink.removed for sink in stage.sinks):
        return words.StateInStage.REMOVED
    if lost or done:
        return words.StateInStage.LOST if lost else words.StateInStage.DONE
    return words.StateInStage.WAITING if stage.blocked_by is None else words.StateInStage.BLOCKED


def _detail(sink: SinkJudgement, batch: BatchReport | None) -> words.BatchDetail | None:
    if batch is None:
        return words.BatchDetail.EXPIRED if sink.brought else None
    expired = batch.version and batch.sequence < sink.versions_from
    return words.BatchDetail.VERSION_EXPIRED if expired else None


def _sink(sink: SinkJudgement, batch: BatchReport | None) -> SinkOutcome:
    return SinkOutcome(
        name=sink.name,
        state=sink.state,
        batch_rows=None if batch is None else batch.rows,
        read_at=None if batch is None else batch.started_at,
        committed_at=None if batch is None else batch.committed_at,
        behind=sink.behind,
        version=(batch.version or None) if batch is not None else None,
        detail=_detail(sink, batch),
        blocked_by=None if sink.wait is None else sink.wait.blocked_by,
        message=None if sink.wait is None else sink.wait.message,
        guarantee=sink.guarantee,
    )
