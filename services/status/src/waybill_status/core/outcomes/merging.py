"""Merges the judgements of those parts of a token that belong to one pipeline. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from waybill_shared.contract.vectors import TopicPartition, Vector, join, merge_spans
from waybill_shared.contract.words import OutcomeKind
from waybill_status.core.outcomes.judgements import (
    Judgement,
    SinkJudgement,
    StageJudgement,
    kind_of,
)


def unite(judgements: Sequence[Judgement]) -> Judgement:
    """Return one judgement for all of them; each stage and sink is in it once."""
    first, *others = judgements
    if not others:
        return first
    kind = kind_of(judgements)
    unknown = kind == OutcomeKind.UNKNOWN
    return replace(
        first,
        kind=kind,
        reason=next(judgement.reason for judgement in judgements if judgement.kind == kind),
        stages=() if unknown else _stages(judgements),
        lost=tuple(dict.fromkeys(lost for judgement in judgements for lost in judgement.lost)),
        named=frozenset().union(*(judgement.named for judgement in judgements)),
        dead_asked=() if unknown else tuple(asked for j in judgements for asked in j.dead_asked),
    )


def _stages(judgements: Iterable[Judgement]) -> tuple[StageJudgement, ...]:
    by_name: dict[str, list[StageJudgement]] = {}
    for judgement in judgements:
        for stage in judgement.stages:
            by_name.setdefault(stage.name, []).append(stage)
    return tuple(_stage(stages) for stages in by_name.values())


def _stage(stages: Sequence[StageJudgement]) -> StageJudgement:
    by_key: dict[str, list[SinkJudgement]] = {}
    for stage in stages:
        for sink in stage.sinks:
            by_key.setdefault(sink.key, []).append(sink)
    return StageJudgement(
        name=stages[0].name,
        blocked_by=next((stage.blocked_by for stage in stages if stage.blocked_by), None),
        sinks=tuple(_sink(sinks) for sinks in by_key.values()),
        next_run_at=stages[0].next_run_at,
        drops_of=frozenset().union(*(stage.drops_of for stage in stages)),
    )


def _sink(sinks: Sequence[SinkJudgement]) -> SinkJudgement:
    """Return one judgement of a sink. A part for which the sink was removed does not count if other
    parts have it."""
    first, *others = [sink for sink in sinks if not sink.removed] or sinks
    for sink in others:
        first = replace(
            first,
            required=first.required or sink.required,
            begun=_first(first.begun, sink.begun),
            wanted=join(first.wanted, sink.wanted),
            covered=first.covered and sink.covered,
            vacuous=first.vacuous and sink.vacuous,
            lost=first.lost or sink.lost,
            coming=merge_spans((*first.coming, *sink.coming)),
            wait=first.wait or sink.wait,
        )
    return first


def _first(left: Vector, right: Vector) -> dict[TopicPartition, int]:
    """Return the smaller position of each partition."""
    return {**left, **right, **{key: min(left[key], right[key]) for key in left.keys() & right}}
