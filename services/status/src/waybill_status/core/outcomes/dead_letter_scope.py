"""Decides which dead letters concern a token: those on a path to a sink that it waits for, or
waited for until that was removed. Pure.

A token is final once all such sinks are past its records. Its dead letters do not change after
that. Before a sink passes a record, all dead letters on the path there are known. Later a stage may
find a record dead only for sinks that no such token ever waited for.
"""

from collections.abc import Collection

from waybill_shared.contract.events import SinkDefinition, StageDefinition
from waybill_shared.contract.slots import keys_of, stage_key
from waybill_shared.contract.vectors import join
from waybill_status.core.outcomes.dead_letters import Limit
from waybill_status.core.outcomes.removed import asked_sinks, removals_since
from waybill_status.core.outcomes.views import View


def limits_of(
    generation: int, required: Collection[str], view: View, names: Collection[str] = ()
) -> dict[str, Limit]:
    """Return the limits by key of stage and sink, for a token of that generation that waits for
    `required`.

    Nobody waits for a removed sink any more, so its dead letters count only below what it had
    reached. If the stage of a dead letter was removed as well, nothing more can follow, and all of
    them count. `names`: names of the sinks that count, if not all.
    """
    removals = removals_since(generation, view)
    stages = view.definition.stages if view.definition is not None else ()
    ways = [*stages, *(stage for each in removals for stage in each.stages)]
    present = keys_of(stages)
    limits: dict[str, Limit] = dict.fromkeys(present.intersection(required))
    _spread(limits, ways, generation)
    for number, removal in enumerate(removals):
        until: dict[str, Limit] = {
            key: view.reached.get(key, {})
            for key, sink in asked_sinks(removal.stages, generation)
            if sink.awaited_since <= generation and (not names or sink.name in names)
        }
        _spread(until, ways, generation)
        stay = [*stages, *(stage for each in removals[number + 1 :] for stage in each.stages)]
        alive = keys_of(stay) | {stage_key(stage) for stage in stay}
        for key, limit in until.items():
            _widen(limits, key, limit if key in alive else None)
    return limits


def _spread(limits: dict[str, Limit], stages: Collection[StageDefinition], generation: int) -> None:
    """Copy limits from each stage to the sinks and stages before it, until nothing changes."""
    before: dict[str, Limit] | None = None
    while before != limits:
        before = dict(limits)
        for stage in stages:
            for key, sink in asked_sinks([stage], generation):
                behind = [stage_key(each) for each in stages if _reads(each, sink, generation)]
                for other in behind:
                    if other in limits:
                        _widen(limits, key, limits[other])
                if key in limits:
                    _widen(limits, stage_key(stage), limits[key])


def _reads(stage: StageDefinition, sink: SinkDefinition, generation: int) -> bool:
    ids = {sink.topic_id, *sink.retired} - {None}
    return any(each.since <= generation for each in stage.sinks) and any(
        ids & {source.topic_id, *source.retired} for source in stage.inputs if not source.root
    )


def _widen(limits: dict[str, Limit], key: str, limit: Limit) -> None:
    own = limits.get(key, {})
    limits[key] = None if limit is None or own is None else join(own, limit)
