"""Marks sinks of an outcome that show older rows again, because their stage was rewound.

A sink that replaces rows by key shows older rows, from the first batch that comes again to the last
one. Outcomes stay as they are meanwhile, and so this is said next to them:

1. The record of the pipeline has the rewind before the driver does it. From then on the sink counts
   as rewinding.
2. That ends when the slot says that the sink has done the rewind, and that its position has
   passed its frontier. A sink that is removed before that stays as it is, and so does its mark.

What comes late to the slot makes this too long, and never too short. The record must be known as of
now: if it is not, nobody knows whether such a sink is rewinding.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from waybill_shared.contract.errors import UserError
from waybill_shared.contract.events import PipelineRecord, StageDefinition
from waybill_shared.contract.slots import Slot, sink_key
from waybill_shared.contract.topology import stages_of
from waybill_status.core.outcomes.outcome import Outcome, StageOutcome

SinkName = tuple[str, str]
"""Stage and name."""
Rewinding = Mapping[SinkName, bool | None]
"""Of sinks that are rewinding; None: nobody knows now."""
WORST = (True, None, False)


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
    of those that were ever rewound."""
    found: dict[SinkName, bool | None] = {}
    upserting = find_upsert_sinks(record)
    for stage, sink, key, number in _rewound(record):
        if (stage, sink) not in upserting:
            continue
        if slot is None:
            found[stage, sink] = None
            continue
        state = slot.sinks.get(key)
        if state is None or state.rewind < number or state.rewound:
            found[stage, sink] = True
    if slot is not None:
        found |= dict.fromkeys(set(_removed(slot)) & upserting, True)
    return found


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


def _rewound(record: PipelineRecord) -> Iterator[tuple[str, str, str, int]]:
    """Yield the sinks of stages that were ever rewound: stage, sink, key, newest number."""
    numbers: dict[tuple[str, int], int] = {}
    for rewind in record.rewinds:
        of = (rewind.stage, rewind.since)
        numbers[of] = max(rewind.number, numbers.get(of, 0))
    for stage in record.stages:
        number = numbers.get((stage.name, stage.since))
        for sink in stage.sinks if number is not None else ():
            yield stage.name, sink.name, sink_key(stage.name, sink.name, sink.since), number or 0


def _removed(slot: Slot) -> Iterator[SinkName]:
    """Yield the sinks that were removed before their stage had caught up."""
    for stage in stages_of(slot.removals):
        for sink in stage.sinks:
            state = slot.sinks.get(sink_key(stage.name, sink.name, sink.since))
            if state is not None and state.rewound:
                yield stage.name, sink.name


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
