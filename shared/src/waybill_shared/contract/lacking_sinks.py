"""Decides which sinks lack the record of a dead letter, and what a replay into them would do. Pure.

A letter with a `sink` is of this sink alone. One without is of all sinks that its stage had when
the record died, and that begin at or before it. What came later has read the record itself. A name
that was used again is another stage or sink, which lacks nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from waybill_shared.contract import dead_letters as named
from waybill_shared.contract.events import StageDefinition
from waybill_shared.contract.former_names import is_meant
from waybill_shared.contract.manifest.model import Manifest
from waybill_shared.contract.manifest.sink_settings import SinkSettings
from waybill_shared.contract.topology import StageSink, Topology

FIRST_GENERATION: Final = 1
"""The one that is meant by a letter that does not name it: those of before did not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayHarm:
    """The names of sinks to which the rows of a replay do harm: `replaced` would contain nothing
    else; in `aged` an old row may take the place of a newer one.
    """

    replaced: tuple[str, ...] = ()
    aged: tuple[str, ...] = ()


def find_lacking(
    stages: Iterable[StageDefinition], letter: Mapping[str, str]
) -> tuple[StageSink, ...]:
    """Return the sinks that lack the record; none if they are gone, or their stage is, or does not
    read its topic any more. `letter`: what its headers say.
    """
    generation = int(letter.get(named.GENERATION, FIRST_GENERATION))
    for stage in stages:
        reads = any(source.topic == letter[named.TOPIC] for source in stage.inputs)
        meant = is_meant(stage, (letter[named.STAGE],))
        if meant and stage.since <= generation and reads:
            sinks = Topology([stage]).sinks
            return tuple(each for each in sinks if _lacks(each, letter, generation))
    return ()


def find_harm(
    manifest: Manifest, stages: Sequence[StageDefinition], into: Iterable[str]
) -> ReplayHarm:
    """Return what a replay into these sinks, by their keys, does there and in those after them."""
    settings = {(s.name, k.name): k.settings for s in manifest.stages for k in s.sinks}
    beyond = Topology(stages).beyond(frozenset(into))
    found = [(each.sink.name, settings.get((each.stage.name, each.sink.name))) for each in beyond]
    known: list[tuple[str, SinkSettings]] = [(name, s) for name, s in found if s is not None]
    return ReplayHarm(
        replaced=tuple(name for name, each in known if each.replaces),
        aged=tuple(name for name, each in known if each.may_age),
    )


def _lacks(each: StageSink, letter: Mapping[str, str], generation: int) -> bool:
    only = letter.get(named.SINK)
    if only is not None:
        return each.key == only
    place = (letter[named.TOPIC_ID], int(letter[named.PARTITION]))
    begins = max(each.stage.bases.get(place, 0), each.sink.bases.get(place, 0))
    return each.sink.since <= generation and begins <= int(letter[named.OFFSET])
