"""Decides which sinks the token of a replay waits for, and where its letters enter. Pure."""

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Final

from waybill_shared.contract.former_names import is_meant
from waybill_shared.contract.replays import entrance
from waybill_shared.contract.slots import stage_key
from waybill_shared.contract.topology import StageSink, Topology
from waybill_shared.contract.vectors import Span

REPLAYS: Final = "replays"
"""What answers call the topic of ours in which replays have their positions."""


def last_of(
    known: Topology, passed: Iterable[StageSink], generation: int, names: Collection[str]
) -> list[str]:
    """Return the keys of the sinks from which nothing leads on to another sink that the token waits
    for. `names`: all names of those that are asked for, if these are not all; one that leads on may
    be asked for, too.
    """
    return [
        each.key
        for each in passed
        if each.sink.awaited_since <= generation
        and (is_meant(each.sink, names) if names else not known.leads_on(each.sink, generation))
    ]


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
