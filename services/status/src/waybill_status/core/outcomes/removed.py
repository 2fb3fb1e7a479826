"""Finds what was removed from a pipeline since a token was issued. A token does not wait for that,
but answers still show it."""

from collections.abc import Iterable, Iterator

from waybill_shared.contract.events import Definition, SinkDefinition, StageDefinition
from waybill_shared.contract.slots import Removal, keys_of, sink_key
from waybill_status.core.outcomes.judgements import SinkJudgement, StageJudgement
from waybill_status.core.outcomes.views import View


def removals_since(generation: int, view: View) -> list[Removal]:
    """Return the removals after that generation. What was removed earlier never concerned such a
    token."""
    return [removal for removal in view.removals if removal.generation > generation]


def asked_sinks(
    stages: Iterable[StageDefinition], generation: int
) -> Iterator[tuple[str, SinkDefinition]]:
    """Yield the sinks that tokens of that generation know, each with its key."""
    for stage in stages:
        for sink in stage.sinks:
            if sink.since <= generation:
                yield sink_key(stage.name, sink.name, sink.since), sink


def removed_stages(
    generation: int, topic_id: str, view: View, definition: Definition
) -> Iterable[StageJudgement]:
    """Yield the stages that the records passed or would have passed, and that the pipeline no
    longer has."""
    present = keys_of(definition.stages)
    for removal in removals_since(generation, view):
        for stage in removal.stages:
            sinks = tuple(
                _removed_sink(key, sink)
                for key, sink in asked_sinks([stage], generation)
                if key not in present
                if topic_id in {reached for reached, _ in view.reached.get(key, {})}
            )
            if sinks:
                yield StageJudgement(name=stage.name, blocked_by=None, sinks=sinks)


def _removed_sink(key: str, sink: SinkDefinition) -> SinkJudgement:
    return SinkJudgement(
        key=key,
        name=sink.name,
        required=False,
        wanted={},
        covered=False,
        vacuous=True,
        removed=True,
    )
