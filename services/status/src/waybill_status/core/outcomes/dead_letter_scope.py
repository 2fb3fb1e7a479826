"""Decides which dead letters concern a token: those on a path to a sink that it waits for, or
waited for until that was removed. Pure.

A token is final once all such sinks are past its records. Its dead letters do not change after
that. Before a sink passes a record, all dead letters on the path there are known. Later a stage may
find a record dead only for sinks that no such token ever waited for.
"""

from collections.abc import Collection

from waybill_shared.contract.former_names import is_meant
from waybill_shared.contract.slots import stage_key
from waybill_shared.contract.topology import Topology, removals_since
from waybill_shared.contract.vectors import join
from waybill_status.core.outcomes.dead_letters import Limit
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
    removals = removals_since(view.removals, generation)
    present = Topology(view.definition.stages if view.definition is not None else ())
    topology = present.with_removed(removals).at(generation)
    limits: dict[str, Limit] = dict.fromkeys(present.by_key.keys() & set(required))
    _spread(limits, topology)
    for number, removal in enumerate(removals):
        until: dict[str, Limit] = {
            each.key: view.reached.get(each.key, {})
            for each in Topology(removal.stages).at(generation).sinks
            if each.sink.awaited_since <= generation and (not names or is_meant(each.sink, names))
        }
        _spread(until, topology)
        alive = present.with_removed(removals[number + 1 :])
        for key, limit in until.items():
            stays = key in alive.by_key or key in alive.by_stage
            _widen(limits, key, limit if stays else None)
    return limits


def _spread(limits: dict[str, Limit], topology: Topology) -> None:
    """Copy limits from each stage to the sinks and stages before it, until nothing changes."""
    before: dict[str, Limit] | None = None
    while before != limits:
        before = dict(limits)
        for each in topology.sinks:
            for reader in map(stage_key, topology.readers(each.sink)):
                if reader in limits:
                    _widen(limits, each.key, limits[reader])
            if each.key in limits:
                _widen(limits, stage_key(each.stage), limits[each.key])


def _widen(limits: dict[str, Limit], key: str, limit: Limit) -> None:
    own = limits.get(key, {})
    limits[key] = None if limit is None or own is None else join(own, limit)
