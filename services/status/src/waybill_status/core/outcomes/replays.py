"""Decides which sinks the token of a replay waits for. Pure."""

from collections.abc import Collection, Iterable
from typing import Final

from waybill_shared.contract.former_names import is_meant
from waybill_shared.contract.topology import StageSink, Topology

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
