"""What was taken away from a pipeline since a token was born: not waited for, but not forgotten."""

from collections.abc import Iterable, Iterator

from waybill_shared.contract.events import Definition, SinkDefinition, StageDefinition
from waybill_shared.contract.slots import Removal, keys_of, sink_key
from waybill_status.core.judgements import SinkJudgement, StageJudgement
from waybill_status.core.views import View


def removals_since(generation: int, view: View) -> list[Removal]:
    """What was gone before a token of that generation never concerned it."""
    return [removal for removal in view.removals if removal.generation > generation]


def asked_sinks(
    stages: Iterable[StageDefinition], generation: int
) -> Iterator[tuple[str, SinkDefinition]]:
    """Those that tokens of that generation know, each behind its key."""
    for stage in stages:
        for sink in stage.sinks:
            if sink.since <= generation:
                yield sink_key(stage.name, sink.name, sink.since), sink


def removed_stages(
    generation: int, topic_id: str, view: View, definition: Definition
) -> Iterable[StageJudgement]:
    """What the records passed or would have passed, and the pipeline has no longer."""
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
