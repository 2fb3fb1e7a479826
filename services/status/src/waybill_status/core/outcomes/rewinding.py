"""Marks sinks of an outcome that show older rows again, because their stage was rewound.

A sink that replaces rows by key shows older rows, from the first batch that comes again to the last
one. Outcomes stay as they are meanwhile, and so this is said next to them:

1. The record of the pipeline has the rewind before the driver does it. From then on the sinks of
   the stage count as rewinding, and those of the stages that read what it writes.
2. For a sink of the stage that ends when the slot says that the sink has done the rewind, and that
   its position has passed its frontier.
3. What such a sink has written again to a topic ends where the slot says. For the sinks of a stage
   that reads this topic it ends when they are past that, and what they wrote to a topic ends with
   that batch.

A sink that is removed before that stays as it is, and so does its mark.

What comes late to the slot makes this too long, and never too short. The record must be known as of
now: if it is not, nobody knows whether such a sink is rewinding.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import Final

from waybill_shared.contract.errors import UserError
from waybill_shared.contract.events import PipelineRecord, StageDefinition
from waybill_shared.contract.former_names import names_of
from waybill_shared.contract.slots import SinkState, Slot, stage_key
from waybill_shared.contract.topology import StageSink, Topology
from waybill_shared.contract.vectors import Vector, join, passes
from waybill_status.core.outcomes.outcome import Outcome, StageOutcome

SinkName = tuple[str, str]
"""Stage and name."""
Rewinding = Mapping[SinkName, bool | None]
"""Of sinks that are rewinding; None: nobody knows now."""
WORST = (True, None, False)
NOTHING_KNOWN: Final = SinkState(rewind=-1)


def find_upsert_sinks(record: PipelineRecord) -> frozenset[SinkName]:
    """Return the sinks that replace rows by key, or did so when their stage was rewound."""
    first = min((rewind.at for rewind in record.rewinds), default=None)
    before = [each for each in record.earlier if first is not None and each.until >= first]
    found: set[SinkName] = set()
    for manifest in (record.manifest, *(each.manifest for each in before)):
        try:
            stages = manifest.model.stages
        except UserError:  # a manifest that is refused today
            return frozenset(_names(record.stages))
        found |= {
            (s.name, sink.name) for s in stages for sink in s.sinks if sink.settings.merge_keys
        }
    return frozenset(found)


def nobody_knows(record: PipelineRecord) -> Rewinding:
    """Return all sinks: if one of them is rewinding is not known."""
    return dict.fromkeys(_names(record.stages))


def find_rewinding(record: PipelineRecord, slot: Slot | None) -> Rewinding:
    """Return the sinks that are rewinding by the record and the slot; without a slot nobody knows
    of those that may be."""
    removals = slot.removals if slot is not None else ()
    older = OlderRows(record, Topology(record.stages).with_removed(removals), slot)
    upserting = find_upsert_sinks(record)
    found: dict[SinkName, bool | None] = {}
    for each in older.sinks:
        name = (each.stage.name, each.sink.name)
        names = product(names_of(each.stage), names_of(each.sink))
        if not upserting.isdisjoint(names) and older.end_in(each) is None:
            found[name] = None if slot is None else True
    return found


class OlderRows:
    """The ends of rows that stages wrote again, in each sink that has some."""

    def __init__(self, record: PipelineRecord, topology: Topology, slot: Slot | None) -> None:
        self._topology = topology
        self._states = {} if slot is None else slot.sinks
        self._numbers: dict[str, int] = {}
        newest_last = reversed(topology.stages)  # a stage may be called as a removed one was
        keys = {(stage.name, stage.since): stage_key(stage) for stage in newest_last}
        for rewind in record.rewinds:
            of = keys.get((rewind.stage, rewind.since), "")
            self._numbers[of] = max(rewind.number, self._numbers.get(of, 0))
        rewound = [
            stage
            for stage in topology.stages
            if stage_key(stage) in self._numbers
            or any(self._state_of(each).rewound for each in Topology([stage]).sinks)
        ]
        read = {*map(stage_key, (*rewound, *topology.fed_by(rewound)))}
        self.sinks = tuple(each for each in topology.sinks if stage_key(each.stage) in read)
        """All that may have some."""
        self._keys = {each.key for each in self.sinks}
        self._ends: dict[str, Vector | None] = {}

    def end_in(self, sink: StageSink) -> Vector | None:
        """Return where they end in the topic of the sink, which has all of them and newer ones;
        None: it has not, as far as is known."""
        if sink.key not in self._ends:
            self._ends[sink.key] = None
            self._ends[sink.key] = self._find_end(sink)
        return self._ends[sink.key]

    def _find_end(self, sink: StageSink) -> Vector | None:
        state = self._state_of(sink)
        number = self._numbers.get(stage_key(sink.stage), 0)
        if state.rewound or state.rewind < number:
            return None
        read: Vector = {}
        sources = self._sources_of(sink)
        for end in map(self.end_in, sources):
            if end is None:
                return None
            read = join(read, end)
        if not passes(state.frontier, read):
            return None
        hop = next((hop for hop in state.hops if sources and passes(hop.inputs, read)), None)
        return join(state.rewritten, hop.outputs) if hop is not None else state.rewritten

    def _state_of(self, sink: StageSink) -> SinkState:
        return self._states.get(sink.key, NOTHING_KNOWN)

    def _sources_of(self, sink: StageSink) -> list[StageSink]:
        """Return the sinks from which the stage may read older rows."""
        writers = (each for i in sink.stage.inputs for each in self._topology.writers(i))
        return [each for each in writers if each.key in self._keys]


def unite(found: Iterable[tuple[str, Rewinding]]) -> dict[str, Rewinding]:
    """Return what is known by the name of the pipeline. Of pipelines that had one name, one after
    the other, the worst counts."""
    by_name: dict[str, dict[SinkName, bool | None]] = {}
    for name, rewinding in found:
        known = by_name.setdefault(name, {})
        for sink, mark in rewinding.items():
            known[sink] = min(mark, known.get(sink, False), key=WORST.index)
    return {**by_name}


def with_rewinding(outcome: Outcome, found: Mapping[str, Rewinding]) -> Outcome:
    """Return the outcome with these sinks marked; `found` is by the name of the pipeline."""
    if outcome.parts is None:
        mine = found.get(outcome.pipeline or "", {})
        return replace(outcome, stages=_mark(outcome.stages, mine)) if mine else outcome
    parts = tuple(
        replace(part, stages=_mark(part.stages, found.get(part.pipeline, {})))
        for part in outcome.parts
    )
    stages = tuple(stage for part in parts for stage in part.stages)
    return replace(outcome, parts=parts, stages=stages)


def _names(stages: Iterable[StageDefinition]) -> Iterator[SinkName]:
    return ((stage.name, sink.name) for stage in stages for sink in stage.sinks)


def _mark(stages: tuple[StageOutcome, ...], found: Rewinding) -> tuple[StageOutcome, ...]:
    return tuple(
        replace(
            stage,
            sinks=tuple(
                replace(sink, rewinding=found.get((stage.stage, sink.name), False))
                for sink in stage.sinks
            ),
        )
        for stage in stages
    )
