"""Once a token is complete or dead-lettered its answer stays, whatever dies and changes later."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from builders import make_sink
from strategies import patiently
from unit.status.slots import (
    ENRICH,
    LOAD,
    claim,
    dead,
    offsets,
    slot,
    span,
    stages_of,
    view,
    with_stages,
)
from unit.status.test_dead_letters import judged, missing
from unit.status.test_removed import with_nothing_left, without_load
from waybill_shared.contract.events import NEVER, StageDefinition
from waybill_shared.contract.slots import DeadEntry, Removal, SinkState, Slot, sink_key, stage_key
from waybill_shared.contract.topology import Topology
from waybill_shared.contract.words import OutcomeKind
from waybill_status.core.outcomes.judge import judge
from waybill_status.core.outcomes.judgements import ARRIVED, Judgement

TOLD = OutcomeKind.DEAD_LETTERED
ASKED = claim(span(3, 5))
END = 4


def test_what_died_in_a_removed_stage_stays_told() -> None:
    content = slot(enriched=(9,), copy=(9,), lake=(9,))
    entry = dead(2, 6, stage="load@1", sink=LOAD)
    before = judged(ASKED, content, entry)
    assert before.kind == TOLD
    assert judged(ASKED, without_load(content), entry).dead_records == before.dead_records
    younger = claim(span(3, 5), generation=2)
    assert judged(younger, without_load(content), entry).kind == OutcomeKind.COMPLETE


def test_what_died_on_the_way_to_a_removed_stage_stays_told() -> None:
    content = slot(enriched=(9,), copy=(9,), lake=(9,))
    for entry in (dead(3, sink=ENRICH), dead(4)):
        assert judged(ASKED, without_load(content), entry).kind == TOLD
        assert judged(ASKED, with_nothing_left(content), entry).kind == TOLD


def test_what_dies_in_a_stage_after_its_awaited_sink_was_removed_is_not_told() -> None:
    """The stage goes on for a sink that no older token waits for."""
    content = slot(enriched=(9,), copy=(9,), lake=(4,))
    enrich, load = stages_of(content)
    (lake,) = load.sinks
    screen = replace(lake, name="screen", awaited_since=2)
    content = with_stages(content, enrich, replace(load, sinks=(screen,)), gone={2: (load,)})
    assert judged(ASKED, content, dead(4, stage="load@1")).kind == OutcomeKind.COMPLETE
    assert judged(ASKED, content, dead(3, stage="load@1")).kind == TOLD, "lake had passed it"
    assert judged(ASKED, content, dead(4, stage="load@1", sink=LOAD)).kind == TOLD, "before"
    runs = dead(3, 9, stage="load@1", up_to=2, runs=((4, 5), (8, 9)))
    assert judged(ASKED, content, runs).kind == OutcomeKind.COMPLETE


def test_what_a_removed_sink_lacked_that_nobody_waited_for_is_not_told() -> None:
    content = slot(enriched=(9,), copy=(9,), lake=(9,))
    enrich, load = stages_of(content)
    screen = replace(load.sinks[0], name="screen", awaited_since=NEVER)
    content = with_stages(content, enrich, load, gone={2: (replace(load, sinks=(screen,)),)})
    sinks = {**content.sinks, "load/screen@1": SinkState(reached=offsets(9))}
    content = replace(content, sinks=sinks)
    lacking = dead(3, stage="load@1", sink="load/screen@1")
    assert judged(ASKED, content, lacking).kind == OutcomeKind.COMPLETE
    assert judged(ASKED, content, dead(3, stage="load@1")).kind == TOLD, "lake lacks it, too"


def test_with_no_sink_left_only_what_was_passed_is_told_of_a_stage_that_goes_on() -> None:
    content = slot(enriched=(9,), copy=(5,), lake=(9,))
    enrich, _ = stages_of(content)
    copy = enrich.sinks[1]
    younger = replace(enrich, sinks=(replace(copy, name="new", since=2),))
    content = with_stages(content, younger, gone={2: (replace(enrich, sinks=(copy,)),)})
    found = judged(claim(span(3, 8)), content, dead(4), dead(6))
    assert (found.kind, found.dead_records.count) == (OutcomeKind.LOST, 1)
    assert judged(ASKED, content, dead(4), dead(6)).kind == TOLD


@pytest.mark.parametrize("waiting", ["load@1", "enrich@1"])
def test_what_a_removed_stage_has_still_to_tell_is_waited_for(waiting: str) -> None:
    content = without_load(slot(enriched=(9,), copy=(9,), lake=(4,)))
    found = judge(ASKED, view(missing(content, waiting=waiting)))
    if waiting == "load@1":
        assert (found.kind, found.reason) == (OutcomeKind.UNKNOWN, "dead_letters_missing")
    else:
        assert found.kind == OutcomeKind.COMPLETE


@dataclass(frozen=True, slots=True)
class Move:
    """A sink comes farther."""

    sink: int
    to: int


@dataclass(frozen=True, slots=True)
class Die:
    """A stage, or one sink of it, has a record or a range that it cannot process."""

    stage: int
    sink: int | None
    start: int
    length: int


@dataclass(frozen=True, slots=True)
class Remove:
    sink: int


@dataclass(frozen=True, slots=True)
class Add:
    """A sink to a stage, which is awaited or not; or a stage of its own, with one that is."""

    stage: int | None
    awaited: bool


Event = Move | Die | Remove | Add
small = st.integers(0, 5)
events = st.one_of(
    st.builds(Move, small, st.integers(1, END)),
    st.builds(Move, small, st.integers(1, END)),
    st.builds(Die, small, st.none() | small, st.integers(0, END - 1), st.integers(0, 3)),
    st.builds(Remove, small),
    st.builds(Add, st.none() | small, st.booleans()),
)


@dataclass
class Line:
    """A pipeline by the rules of drivers: what dies for all sinks of a stage dies before any of
    them is past it; where one has it already, the others lack it one by one. A driver knows no
    removed sinks: what they had, the tracker counts for the others one by one."""

    content: Slot = field(default_factory=slot)
    entries: list[DeadEntry] = field(default_factory=list)
    removed: dict[str, int] = field(default_factory=dict)
    """By key of a stage how far its removed sinks were."""

    @property
    def stages(self) -> tuple[StageDefinition, ...]:
        return stages_of(self.content)

    def run(self, event: Event) -> None:
        match event:
            case Move():
                self._move(event)
            case Die():
                self._die(event)
            case Remove():
                self._remove(event)
            case Add():
                self._add(event)

    def at(self, key: str) -> int:
        return next(iter(self.content.sinks[key].reached.values()))

    def _keys(self) -> list[str]:
        return sorted(_keys_of(self.stages))

    def _limit(self, stage: StageDefinition) -> int:
        """Behind enrich no stage is farther than what it reads."""
        return END if stage.inputs[0].root else self.at(ENRICH)

    def _move(self, event: Move) -> None:
        keys = self._keys()
        key = keys[event.sink % len(keys)]
        stage = next(each for each in self.stages if key in _keys_of([each]))
        to = max(self.at(key), min(event.to, self._limit(stage)))
        self._set(key, to)

    def _set(self, key: str, to: int) -> None:
        states = {**self.content.sinks, key: SinkState(reached=offsets(to))}
        self.content = replace(self.content, sinks=states)

    def _die(self, event: Die) -> None:
        stage = self.stages[event.stage % len(self.stages)]
        keys = sorted(_keys_of([stage]))
        sink = None if event.sink is None else keys[event.sink % len(keys)]
        passed = max(map(self.at, keys)) if sink is None else self.at(sink)
        start, end = max(event.start, passed), event.start + event.length
        if start >= self._limit(stage):
            return
        end = start + 1 if event.length == 0 else min(max(end, start + 1), END)
        had = min(end, self.removed.get(stage_key(stage), 0)) if sink is None else start
        for each in keys if had > start else ():
            self._lack(stage, each, start, had, exact=event.length == 0)
        if max(start, had) < end:
            self._lack(stage, sink, max(start, had), end, exact=event.length == 0)

    def _lack(
        self, stage: StageDefinition, sink: str | None, start: int, end: int, *, exact: bool
    ) -> None:
        key, number = stage_key(stage), f"{len(self.entries)}"
        if exact:
            self.entries.append(dead(start, stage=key, sink=sink, id=number))
        else:
            self.entries.append(replace(dead(start, end, stage=key, sink=sink), id=number))

    def _remove(self, event: Remove) -> None:
        keys = self._keys()
        gone = keys[event.sink % len(keys)]
        if gone == ENRICH and len(self.stages) > 1:
            return  # somebody reads it
        taken = [_only(stage, gone, keep=False) for stage in self.stages]
        left = [s for s in (_only(s, gone, keep=True) for s in self.stages) if s.sinks]
        if all(any(sink.awaited_since == 0 for sink in stage.sinks) for stage in left):
            stage = next(stage for stage in taken if stage.sinks)
            was = self.removed.get(stage_key(stage), 0)
            self.removed[stage_key(stage)] = max(was, self.at(gone))
            self._change(left, [stage for stage in taken if stage.sinks])

    def _add(self, event: Add) -> None:
        since = self.content.generation + 1
        awaited_since = 0 if event.awaited or event.stage is None else NEVER
        sink = replace(make_sink(f"new{since}", since=since), awaited_since=awaited_since)
        if event.stage is None:
            root, _ = stages_of(slot())
            stage = replace(root, name=f"stage{since}", since=since, sinks=(sink,))
            stages, begin = [*self.stages, stage], 0
        else:
            stages = [*self.stages]
            number = event.stage % len(stages)
            stage = stages[number]
            begin = max(map(self.at, _keys_of([stage])))
            stages[number] = replace(stage, sinks=(*stage.sinks, sink))
        self._change(stages, [])
        self._set(sink_key(stage.name, sink.name, since), begin)

    def _change(
        self, stages: Sequence[StageDefinition], removed: Sequence[StageDefinition]
    ) -> None:
        generation = self.content.generation + 1
        if not stages:
            return
        removal = Removal(generation=generation, stages=tuple(removed))
        removals = (*self.content.removals, *([removal] if removed else []))
        content = with_stages(self.content, *stages, generation=generation)
        self.content = replace(content, removals=removals)


def _only(stage: StageDefinition, key: str, *, keep: bool) -> StageDefinition:
    """The stage without that sink, or with nothing else."""
    kept = tuple(
        sink for sink in stage.sinks if (sink_key(stage.name, sink.name, sink.since) != key) == keep
    )
    return replace(stage, sinks=kept)


@patiently
@given(st.lists(events, max_size=24))
@example(
    [
        Add(None, awaited=False),
        Add(1, awaited=False),
        Add(1, awaited=True),
        Remove(2),
        Remove(0),
        Move(3, 1),
        Remove(1),
    ]
).via("load goes on for a sink that the token does not wait for, then for a younger one")
def test_what_is_told_of_a_token_in_the_end_stays(happens: list[Event]) -> None:
    line = Line()
    final: dict[tuple[int, int, int], Judgement] = {}
    for event in happens:
        line.run(event)
        for generation in range(1, line.content.generation + 1):
            for start in range(END):
                for end in range(start + 1, END + 1):
                    place = (generation, start, end)
                    asked = claim(span(start, end), generation=generation)
                    found = judged(asked, line.content, *line.entries)
                    before = final.get(place)
                    if before is not None:
                        assert (found.kind, found.dead_records) == (
                            before.kind,
                            before.dead_records,
                        ), place
                    elif found.kind in ARRIVED:
                        final[place] = found


def _keys_of(stages: Sequence[StageDefinition]) -> set[str]:
    return {each.key for each in Topology(stages).sinks}
