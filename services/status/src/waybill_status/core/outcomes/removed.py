"""Finds what was removed from a pipeline since a token was issued. A token does not wait for that,
but answers still show it."""

from collections.abc import Iterable

from waybill_shared.contract.topology import StageSink, Topology, removals_since
from waybill_status.core.outcomes.judgements import SinkJudgement, StageJudgement
from waybill_status.core.outcomes.views import View


def judge_removed(
    generation: int, topic_id: str, view: View, topology: Topology
) -> Iterable[StageJudgement]:
    """Yield the stages that the records passed or would have passed, and that the pipeline no
    longer has."""
    for removal in removals_since(view.removals, generation):
        for stage in removal.stages:
            sinks = tuple(
                _judge_sink(each)
                for each in Topology([stage]).at(generation).sinks
                if each.key not in topology.by_key
                if topic_id in {reached for reached, _ in view.reached.get(each.key, {})}
            )
            if sinks:
                yield StageJudgement(name=stage.name, blocked_by=None, sinks=sinks)


def _judge_sink(removed: StageSink) -> SinkJudgement:
    return SinkJudgement(
        key=removed.key,
        name=removed.sink.name,
        required=False,
        wanted={},
        covered=False,
        vacuous=True,
        removed=True,
    )
