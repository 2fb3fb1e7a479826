"""The status of a token, as values: the outcome, and how far each stage and sink is.

Never talks to anything, and never replaces missing knowledge by another outcome.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from waybill.dead_letters import DeadLetter, Dropped
from waybill.errors import (
    ProblemError,
    StillInProgress,
    StillUnknown,
    UnexpectedAnswer,
    WaybillError,
)
from waybill.fields import Fields, no_json
from waybill.summaries import summary


class OutcomeKind(StrEnum):
    """The outcome of a token. Only `complete` means: all of it is visible in every sink."""

    COMPLETE = "complete"
    DEAD_LETTERED = "dead_lettered"
    LOST = "lost"
    IN_PROGRESS = "in_progress"
    UNKNOWN = "unknown"


FINAL_KINDS = frozenset({OutcomeKind.COMPLETE, OutcomeKind.DEAD_LETTERED, OutcomeKind.LOST})


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkProgress:
    """The progress of a token in one sink; `behind` counts its records that are still to come."""

    name: str
    state: str
    batch_rows: int | None
    behind: int | None
    version: Mapping[str, object] | None
    detail: str | None = None
    blocked_by: str | None = None
    message: str | None = None
    """What the sink reported, if it accepts nothing now."""
    guarantee: str = "once"
    """`at_least_once`: a row may be in the sink more than once."""
    read_at: datetime | None = None
    """When the batch started that wrote the last of it."""
    committed_at: datetime | None = None
    """Since when readers can see it."""
    rewinding: bool | None = False
    """True if its stage reads records again, so it may show older rows; None: not known now."""

    @property
    def postgres_lsn(self) -> str | None:
        """The WAL position; a standby has the rows at this `pg_last_wal_replay_lsn()` or a later
        one."""
        position = (self.version or {}).get("postgres_lsn")
        return None if position is None else str(position)

    @property
    def iceberg_snapshot_id(self) -> int | None:
        """The snapshot from which the token's records are visible in this Iceberg table."""
        snapshot = (self.version or {}).get("iceberg_snapshot_id")
        return None if snapshot is None else int(str(snapshot))

    @classmethod
    def read(cls, fields: Fields) -> "SinkProgress":
        return cls(
            name=fields.text("name"),
            state=fields.text("state"),
            batch_rows=fields.whole_or_none("batch_rows"),
            behind=fields.whole_or_none("behind"),
            version=fields.mapping_or_none("version"),
            detail=fields.text_or_none("detail"),
            blocked_by=fields.text_or_none("blocked_by"),
            message=fields.text_or_none("message"),
            guarantee=fields.text_or_none("guarantee") or "once",
            read_at=fields.moment_or_none("read_at"),
            committed_at=fields.moment_or_none("committed_at"),
            rewinding=fields.flag_or_none("rewinding"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StageProgress:
    """The progress of a token in one stage, and what blocks it. `next_run_at`: when a pipeline that
    has finished runs again, if it has a schedule."""

    stage: str
    state: str
    batch: int | None
    committed_at: datetime | None
    blocked_by: str | None
    sinks: tuple[SinkProgress, ...]
    next_run_at: datetime | None = None

    @classmethod
    def read(cls, fields: Fields) -> "StageProgress":
        return cls(
            stage=fields.text("stage"),
            state=fields.text("state"),
            batch=fields.whole_or_none("batch"),
            committed_at=fields.moment_or_none("committed_at"),
            blocked_by=fields.text_or_none("blocked_by"),
            sinks=tuple(SinkProgress.read(sink) for sink in fields.objects("sinks")),
            next_run_at=fields.moment_or_none("next_run_at"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LostSpan:
    """Records that can never be processed, and why; `end` is exclusive."""

    reason: str
    topic: str | None
    partition: int | None
    start: int | None
    end: int | None

    @classmethod
    def read(cls, fields: Fields) -> "LostSpan":
        return cls(
            reason=fields.text("reason"),
            topic=fields.text_or_none("topic"),
            partition=fields.whole_or_none("partition"),
            start=fields.whole_or_none("start"),
            end=fields.whole_or_none("end"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineOutcome:
    """The outcome of a merged token in one of its pipelines."""

    pipeline: str
    kind: OutcomeKind
    completed_at: datetime | None
    stages: tuple[StageProgress, ...]
    lost: tuple[LostSpan, ...]
    dead: tuple[DeadLetter, ...] = ()
    dead_count: int = 0
    dropped: tuple[Dropped, ...] = ()

    @property
    def iceberg_snapshots(self) -> dict[str, int]:
        """The id of the Iceberg snapshot from which the records are visible, by sink name."""
        return _snapshots(self.stages)

    @classmethod
    def read(cls, fields: Fields) -> "PipelineOutcome":
        return cls(
            pipeline=fields.text("pipeline"),
            kind=_kind(fields),
            completed_at=fields.moment_or_none("completed_at"),
            stages=tuple(StageProgress.read(stage) for stage in fields.objects("stages")),
            lost=tuple(LostSpan.read(span) for span in fields.objects("lost")),
            dead=tuple(DeadLetter.read(entry) for entry in fields.objects("dead")),
            dead_count=fields.whole_or_none("dead_count") or 0,
            dropped=tuple(Dropped.read(entry) for entry in fields.objects("dropped")),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The status of a token, with the progress of each stage and sink.

    `parts` is empty unless the token was merged from several pipelines: then each has its own, and
    `pipeline` is None. At most `dead_count` of its records are in dead-letter topics. `dead` says
    which, only the first 1,000 of them if it is `dead_truncated`.
    """

    kind: OutcomeKind
    reason: str | None = None
    pipeline: str | None = None
    accepted: int | None = None
    issued_at: datetime | None = None
    completed_at: datetime | None = None
    stages: tuple[StageProgress, ...] = ()
    lost: tuple[LostSpan, ...] = ()
    dead: tuple[DeadLetter, ...] = ()
    dead_count: int = 0
    dead_truncated: bool = False
    dropped: tuple[Dropped, ...] = ()
    eta_s: float | None = None
    parts: tuple[PipelineOutcome, ...] = ()
    retry_after_s: float | None = None
    raw: Mapping[str, object] = field(default_factory=no_json, repr=False, compare=False)

    def __str__(self) -> str:
        """Return one line, as in `lost: 3 records of orders.in (retention_passed)`; `repr` has
        all."""
        return summary(self)

    @property
    def complete(self) -> bool:
        """True if every effect of every record is visible in every required sink."""
        return self.kind is OutcomeKind.COMPLETE

    @property
    def final(self) -> bool:
        """True if the kind will not change any more."""
        return self.kind in FINAL_KINDS

    @property
    def settled(self) -> bool:
        """True if it is final and no sink waits for more. A `lost` outcome that is not settled may
        name more losses later: ask again before you send what is missing.
        """
        stages = (*self.stages, *(stage for part in self.parts for stage in part.stages))
        return self.final and not any(sink.behind for stage in stages for sink in stage.sinks)

    @property
    def iceberg_snapshots(self) -> dict[str, int]:
        """The id of the Iceberg snapshot from which the records are visible, by sink name.

        If there are several pipelines, the names are `pipeline.sink`.
        """
        if not self.parts:
            return _snapshots(self.stages)
        return {
            f"{part.pipeline}.{sink}": snapshot_id
            for part in self.parts
            for sink, snapshot_id in part.iceberg_snapshots.items()
        }

    @classmethod
    def read(cls, fields: Fields, *, retry_after_s: float | None = None) -> "Outcome":
        return cls(
            kind=_kind(fields),
            reason=fields.text_or_none("reason"),
            pipeline=fields.text_or_none("pipeline"),
            accepted=fields.whole_or_none("accepted"),
            issued_at=fields.moment_or_none("issued_at"),
            completed_at=fields.moment_or_none("completed_at"),
            stages=tuple(StageProgress.read(stage) for stage in fields.objects("stages")),
            lost=tuple(LostSpan.read(span) for span in fields.objects("lost")),
            dead=tuple(DeadLetter.read(entry) for entry in fields.objects("dead")),
            dead_count=fields.whole_or_none("dead_count") or 0,
            dead_truncated=fields.flag("dead_truncated"),
            dropped=tuple(Dropped.read(entry) for entry in fields.objects("dropped")),
            eta_s=fields.number_or_none("eta_s"),
            parts=tuple(PipelineOutcome.read(part) for part in fields.objects("parts")),
            retry_after_s=retry_after_s,
            raw=fields.raw,
        )


def outcome_in(error: WaybillError) -> Outcome | None:
    """Return the outcome of a 503, if Waybill cannot judge the token now; else None."""
    if isinstance(error, ProblemError) and "outcome" in error.members:
        fields = Fields(dict(error.members), "the outcome")
        return Outcome.read(fields, retry_after_s=error.retry_after_s)
    return None


def not_final(outcome: Outcome) -> StillInProgress | StillUnknown:
    """Return the error for a wait that ended with this outcome."""
    if outcome.kind is OutcomeKind.UNKNOWN:
        reason = f" ({outcome.reason})" if outcome.reason else ""
        message = f"nobody can judge the token now{reason}: ask again later"
        return StillUnknown(message, outcome=outcome)
    return StillInProgress(f"the token is still {outcome}", outcome=outcome)


def _snapshots(stages: Iterable[StageProgress]) -> dict[str, int]:
    return {
        sink.name: sink.iceberg_snapshot_id
        for stage in stages
        for sink in stage.sinks
        if sink.iceberg_snapshot_id is not None
    }


def _kind(fields: Fields) -> OutcomeKind:
    word = fields.text("outcome")
    try:
        return OutcomeKind(word)
    except ValueError:
        known = ", ".join(OutcomeKind)
        raise UnexpectedAnswer(
            f"{fields.where}.outcome is {word!r}, this client knows {known}: update waybill-client"
        ) from None
