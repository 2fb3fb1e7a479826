"""Decides which sinks the token of a replay waits for, and where its letters enter. Pure."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Final

from waybill_shared.contract.former_names import is_meant
from waybill_shared.contract.replays import entrance
from waybill_shared.contract.slots import Removal, stage_key
from waybill_shared.contract.topology import StageSink, Topology
from waybill_shared.contract.vectors import Span

REPLAYS: Final = "replays"
"""What answers call the topic of ours in which replays have their positions."""


def decide(
    passed: Iterable[StageSink],
    topology: Topology,
    removals: Sequence[Removal],
    generation: int,
    names: Collection[str],
) -> list[str]:
    """Return the keys of the sinks that decide. These are all that are asked for by `names`, which
    has all names of each; a removed one is not left out.

    Without names they are those from which nothing leads on to another sink that the token waits
    for. The present definition counts; if it has none of them, earlier ones do, the latest first.
    """
    awaited = [each for each in passed if each.sink.awaited_since <= generation]
    if names:
        return [each.key for each in awaited if is_meant(each.sink, names)]
    before = (topology.with_removed([removal]) for removal in reversed(removals))
    for known in (each.at(generation) for each in (topology, *before)):
        mine = (each for each in awaited if each.key in known.by_key)
        if last := [each.key for each in mine if not known.leads_on(each.sink, generation)]:
            return last
    return []


def enter(spans: Iterable[Span], into: Collection[str], known: Topology) -> tuple[Span, ...]:
    """Return spans of `waybill.replays` as a slot has them: in the input of the stage that has the
    sinks `into`. None are left if no stage in `known` has one.
    """
    stages = {stage_key(each.stage) for each in known.sinks if each.key in into}
    return tuple(
        replace(span, topic_id=entrance(span.topic_id, stage))
        for stage in sorted(stages)
        for span in spans
    )
