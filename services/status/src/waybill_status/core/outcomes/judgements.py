"""The judgements of a token: the values that outcomes are made of."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from waybill_shared.contract.driver_news import SinkWait
from waybill_shared.contract.vectors import Span, Vector
from waybill_shared.contract.word import meanings
from waybill_shared.contract.words import (
    Guarantee,
    LossReason,
    OutcomeKind,
    StateInSink,
    UnknownReason,
)
from waybill_status.core.outcomes.dead_letters import NONE, DeadAsked, DeadRecords, Dropped
from waybill_status.core.outcomes.views import PipelineKey

FINAL: Final = frozenset({OutcomeKind.COMPLETE, OutcomeKind.DEAD_LETTERED, OutcomeKind.LOST})
ARRIVED: Final = frozenset({OutcomeKind.COMPLETE, OutcomeKind.DEAD_LETTERED})
# Of several parts the first of these that one of them has: a loss stays a loss whatever else
# is unknown, and nothing is called in progress or complete while a part of it is unknown.
PRECEDENCE: Final = (
    OutcomeKind.LOST,
    OutcomeKind.UNKNOWN,
    OutcomeKind.IN_PROGRESS,
    OutcomeKind.DEAD_LETTERED,
    OutcomeKind.COMPLETE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LostSpan:
    reason: str = field(metadata={"description": meanings(LossReason)})
    topic: str
    partition: int
    start: int
    end: int = field(metadata={"description": "exclusive"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkJudgement:
    """The judgement of one sink.

    `vacuous`: all that is wanted is below the base, so no batch ever wrote it. `lost`: some of it
    never reaches this sink, so that covering it means little. `removed`: the pipeline no longer has
    this sink. `coming`: what is still to arrive. `begun`: the positions at which the first of it
    has arrived. Batches of sequences below `versions_from` have versions that are deleted.
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
    begun: Vector = field(default_factory=dict)
    versions_from: int = 0
    guarantee: str = Guarantee.ONCE

    @property
    def behind(self) -> int:
        return sum(span.end - span.start for span in self.coming)

    @property
    def brought(self) -> bool:
        """True if some batch has written the last of it."""
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
    """The judgement of one stage. `drops_of`: the inputs of the token for which its batches count
    dropped records. `next_run_at`: when a pipeline that has finished runs again."""

    name: str
    blocked_by: str | None
    sinks: tuple[SinkJudgement, ...]
    drops_of: frozenset[str] = frozenset()
    next_run_at: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The outcome of a token in one pipeline, without the batches that wrote it.

    `dead_asked`: where to look for its dead letters, if there may be some. `named`: which of the
    sinks that were asked for by name it covers.
    """

    pipeline: PipelineKey
    name: str
    kind: OutcomeKind
    reason: UnknownReason | None = None
    stages: tuple[StageJudgement, ...] = ()
    lost: tuple[LostSpan, ...] = ()
    dead_asked: tuple[DeadAsked, ...] = ()
    dead_records: DeadRecords = NONE
    dropped: tuple[Dropped, ...] = ()
    named: frozenset[str] = frozenset()
    beyond: bool = False
    """True if its pipeline follows the token's own: numbers are then those of complete batches."""


def kind_of(judgements: Sequence[Judgement]) -> OutcomeKind:
    """Return the outcome of several inputs or pipelines together."""
    kinds = {judgement.kind for judgement in judgements}
    return next(kind for kind in PRECEDENCE if kind in kinds)


def dead_lettered(judgement: Judgement, dead_records: DeadRecords) -> Judgement:
    """Return the judgement with the records that were found in dead-letter topics."""
    complete = judgement.kind == OutcomeKind.COMPLETE
    kind = OutcomeKind.DEAD_LETTERED if complete and dead_records.found else judgement.kind
    return replace(judgement, kind=kind, dead_records=dead_records)
