"""Decides which sinks lack the record of a dead letter, and what a replay into them would do. Pure.

A letter with a `sink` is of this sink alone. One without is of all sinks that its stage had when
the record died, and that begin at or before it. What came later has read the record itself. A name
that was used again is another stage or sink, which lacks nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from waybill_shared.contract import dead_letters as named
from waybill_shared.contract.events import PipelineRecord, StageDefinition
from waybill_shared.contract.former_names import is_meant
from waybill_shared.contract.manifest.model import Manifest
from waybill_shared.contract.manifest.sink_settings import SinkSettings
from waybill_shared.contract.slots import stage_key
from waybill_shared.contract.topology import StageSink, Topology

FILE: Final = "://"  # in what a letter of a fetched file has instead of a topic
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
        if _is_of(stage, letter) and stage.since <= generation and reads:
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


class Obstacles:
    """Why letters of one pipeline cannot be replayed, as far as its present definition says it."""

    def __init__(self, record: PipelineRecord) -> None:
        self._record = record
        self._replaced: dict[frozenset[str], tuple[str, ...]] = {}

    def of(self, letter: Mapping[str, str]) -> str | None:
        """Return the reason; None if the letter can be replayed. `letter`: what its headers say."""
        record = self._record
        into = frozenset(each.key for each in find_lacking(record.stages, letter))
        if not into:
            return describe_gone(record.name, letter)
        if into not in self._replaced:
            harm = find_harm(record.manifest.model, record.stages, into)
            self._replaced[into] = harm.replaced
        replaced = self._replaced[into]
        return describe_replaced(replaced) if replaced else None


def describe_gone(pipeline: str, letter: Mapping[str, str]) -> str:
    """Return the reason where no sink lacks the letter."""
    if FILE in letter[named.TOPIC]:
        return "it is a row of a file: mend it, and send it as a record"
    only = letter.get(named.SINK)
    what = f"stage {letter[named.STAGE]}" if only is None else f"sink {only.rpartition('@')[0]}"
    return f"pipeline {pipeline} has no {what} any more that lacks it"


def describe_replaced(sinks: Iterable[str]) -> str:
    """Return the reason where a letter would become all that these sinks contain."""
    return f"each batch replaces what {', '.join(sinks)} contains, and it would be a batch"


def _is_of(stage: StageDefinition, letter: Mapping[str, str]) -> bool:
    """Return True if the record died in this stage. By its name alone it may be another one, that
    has the name of a removed stage since.
    """
    key = letter.get(named.STAGE_KEY)
    return is_meant(stage, (letter[named.STAGE],)) if key is None else stage_key(stage) == key


def _lacks(each: StageSink, letter: Mapping[str, str], generation: int) -> bool:
    only = letter.get(named.SINK)
    if only is not None:
        return each.key == only
    place = (letter[named.TOPIC_ID], int(letter[named.PARTITION]))
    begins = max(each.stage.bases.get(place, 0), each.sink.bases.get(place, 0))
    return each.sink.since <= generation and begins <= int(letter[named.OFFSET])
