"""Applies one fact to the slot of its pipeline. Owns how a slot changes; does no I/O.

A slot contains all that is known of one pipeline. It changes in this order:

1. `app.tracker` receives a fact from the commits topic and calls `apply_fact` with the slot.
2. The body of the fact is merged into the slot. A definition replaces an older one; the stages that
   it removes are kept in `removals`. A commit moves the frontier of its sink, adds a hop and adds
   the spans that its stage set aside. Dead letters wait in the slot until they can be counted.
   After a deletion, commits and dead letters change nothing.
3. While the slot has no definition, the work ends here: nobody knows who reads what.
4. `dead_letters.count` makes entries of the dead letters that wait, in the order of their
   sequences.
5. `losses.settle` works out which offsets of root inputs will never reach each sink.
6. `Graph.root_position` translates the frontier of each sink to root inputs, hop by hop, and
   `reached` moves there. It moves for no sink while dead letters that a sink is past are not known
   yet.
7. Each move that a batch caused gives a `Progress`, which the tracker stores as history.
8. `hops.thin_out` limits the hops: old ones that every reader is past, and ones that are too many.

The merge is a join: facts in any order, repeated or split, lead to the same state. Both sides of a
hop are cumulative, so a later fact covers one that was lost. Beats and transitions are no facts:
there the newest message counts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from waybill_shared.contract import slots
from waybill_shared.contract.batches import BatchReport, later
from waybill_shared.contract.dead_letter_facts import DeadLetters
from waybill_shared.contract.events import Commit, Definition, Fact, StageDefinition
from waybill_shared.contract.lifecycle_events import Beat, LifecycleEvent
from waybill_shared.contract.slots import DeadEntry, Hop, Progress, Removal, SinkState, Slot
from waybill_shared.contract.topology import StageSink, Topology
from waybill_shared.contract.vectors import Span, TopicPartition, Vector, behind, join, meet
from waybill_token_tracker.core.dead_letters import all_known, count, receive
from waybill_token_tracker.core.graph import Graph
from waybill_token_tracker.core.hops import thin_out, with_hop
from waybill_token_tracker.core.losses import settle, unite


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """The effect of one fact: the new slot, the steps of its sinks, and the new entries of dead
    records."""

    slot: Slot
    progress: tuple[Progress, ...]
    dead: tuple[DeadEntry, ...] = ()


def apply_fact(slot: Slot, fact: Fact) -> Applied:
    """Return the slot with one fact, and what is new in it."""
    match fact.body:
        case Definition():
            return _advance(slot, _apply_definition(slot, fact.generation, fact.body))
        case Commit():
            return _advance(slot, _apply_commit(slot, fact.body))
        case DeadLetters():
            return _advance(slot, _apply_letters(slot, fact.body))


def apply_beat(slot: Slot, beat: Beat, now_ms: int) -> Slot:
    """Return the slot with a beat of the runner. The runner is alive. The beat says what blocks the
    pipeline, what sinks wait for, and which fields the driver ignores."""
    heard_at = max(slot.heard_at, now_ms)
    slot = replace(slot, heard_at=heard_at, ignored=beat.ignored)
    slot = replace(slot, conditions=beat.conditions)
    return replace(slot, blocked_by=beat.blocked_by, waits=beat.waits)


def apply_lifecycle(slot: Slot, event: LifecycleEvent, now_ms: int) -> Slot:
    """Return the slot with an event of the lifecycle topic. The last transition received is the
    newest: only one runner writes at a time, in the order of the topic, and its clock may have been
    set back. Other events say what blocks the pipeline now, its position in a queue, and when its
    schedule begins the next run; claims and times that were skipped say nothing of that.

    `now_ms`: when the event was received, by the clock that later measures how long ago that is.
    """
    slot = replace(slot, heard_at=max(slot.heard_at, now_ms))
    if event.kind in ("claim", "schedule"):
        return slot
    said = slot.lifecycle
    if event.kind == "transition" or said is None:
        said = event
    elif said.phase == event.phase:
        said = replace(said, reason=event.reason, next_run_at=event.next_run_at)
    slot = replace(slot, lifecycle=said, conditions=event.conditions)
    return replace(slot, blocked_by=event.blocked_by, waits=event.waits)


def _apply_definition(slot: Slot, generation: int, definition: Definition) -> Slot:
    newer = generation > slot.generation or (
        generation == slot.generation
        and (slot.definition is None or definition.deleted >= slot.definition.deleted)
    )
    current = definition if newer or slot.definition is None else slot.definition
    return replace(
        slot,
        generation=max(generation, slot.generation),
        definition=current,
        former=_former(slot, definition, current),
        removals=_removals(slot, current, max(generation, slot.generation)),
    )


def _removals(slot: Slot, current: Definition, generation: int) -> tuple[Removal, ...]:
    """Add the stages and sinks that the new definition lacks. Tokens that waited for them are
    answered from what they were. A removal is never undone."""
    known = slot.definition.stages if slot.definition is not None else ()
    removed = _without(known, Topology(current.stages))
    more = (Removal(generation=generation, stages=removed),) if removed else ()
    return (*slot.removals, *more)


def _without(stages: tuple[StageDefinition, ...], present: Topology) -> tuple[StageDefinition, ...]:
    kept = (
        replace(
            stage,
            sinks=tuple(
                each.sink for each in Topology([stage]).sinks if each.key not in present.by_key
            ),
        )
        for stage in stages
    )
    return tuple(stage for stage in kept if stage.sinks)


def _former(slot: Slot, heard: Definition, current: Definition) -> dict[str, Vector]:
    """Return where stages started in their retired topics, by all definitions so far. That includes
    stages that were removed."""
    known = slot.definition.stages if slot.definition is not None else ()
    present = {slots.stage_key(stage) for stage in current.stages}
    former = {key: started for key, started in slot.former.items() if key not in present}
    for stage in current.stages:
        retired = {topic_id for source in stage.inputs for topic_id in source.retired}
        started = slot.former.get(slots.stage_key(stage), {})
        for other in (*known, *heard.stages):
            if slots.stage_key(other) == slots.stage_key(stage):
                started = join(started, other.bases)
        started = {place: offset for place, offset in started.items() if place[0] in retired}
        if started:
            former[slots.stage_key(stage)] = started
    return former


def _apply_commit(slot: Slot, commit: Commit) -> Slot:
    """Add a commit to its sink. A deletion is final: a commit that follows one does not count."""
    if slot.definition is not None and slot.definition.deleted:
        return slot
    key = slots.key_of_commit(commit)
    return replace(slot, sinks={**slot.sinks, key: _add_commit(slot.sinks.get(key), commit)})


def _apply_letters(slot: Slot, letters: DeadLetters) -> Slot:
    """Add dead letters. As with commits, those that follow a deletion do not count."""
    deleted = slot.definition is not None and slot.definition.deleted
    return slot if deleted else receive(slot, letters)


def _add_commit(known: SinkState | None, commit: Commit) -> SinkState:
    state = SinkState() if known is None else known
    frontier = join(state.frontier, commit.frontier)
    hop = _hop(commit)
    return SinkState(
        frontier=frontier,
        reached=state.reached,
        hops=with_hop(state.hops, hop),
        set_aside=unite(state.set_aside, _set_aside(commit)),
        lost=state.lost,
        batch=later(state.batch, commit.batch),
        versions_from=max(commit.versions_from, state.versions_from),
        began={**_began(commit), **state.began},
        steps=state.steps,
        rewind=max(state.rewind, commit.rewind),
        rewound=_rewound(state, commit, frontier),
        rewritten=_rewritten(state, commit, hop.outputs),
        replayed=join(state.replayed, _replays_in(commit)),
    )


def _rewound(state: SinkState, commit: Commit, frontier: Vector) -> Vector:
    """Return where the next batch of a sink begins, if that is before its frontier. Commits of the
    newest rewind say so; of these, the one that is the furthest."""
    if not (state.rewound or commit.rewound):
        return {}  # as nearly always
    said = {**commit.frontier, **commit.rewound}
    if state.rewind == commit.rewind:
        said = {**join(state.position, said)}
    return behind(state.position if state.rewind > commit.rewind else said, frontier)


def _rewritten(state: SinkState, commit: Commit, ends: Vector) -> Vector:
    """Return where the output of the newest rewind ends. The first commit that has no partition
    before its frontier says so; of later ones, which may be received before it, the nearest ends
    count."""
    known = state.rewritten if commit.rewind <= state.rewind else {}
    if commit.rewind < max(state.rewind, 1) or commit.rewound or not ends:
        return known
    return meet(known, ends) if known else ends


def _began(commit: Commit) -> dict[TopicPartition, int]:
    """Return where the first rows of the sink start. Each commit names the gap before them."""
    first = {(o.topic_id, o.partition): o.gaps[0] for o in commit.outputs if o.gaps}
    return {place: gap.end for place, gap in first.items() if gap.start == 0}


def _hop(commit: Commit) -> Hop:
    return Hop(
        sequence=commit.batch.sequence,
        inputs=commit.frontier,
        outputs={(o.topic_id, o.partition): o.end for o in commit.outputs},
        gaps=tuple(
            Span(topic_id=o.topic_id, partition=o.partition, start=gap.start, end=gap.end)
            for o in commit.outputs
            for gap in o.gaps
        ),
        replayed=_replays_in(commit),
    )


def _replays_in(commit: Commit) -> Vector:
    """Return the replays that are done. At 0 the commit only says which topic the sink reads."""
    if all(commit.replayed.values()):
        return commit.replayed
    return {place: end for place, end in commit.replayed.items() if end}


def _set_aside(commit: Commit) -> dict[str, list[Span]]:
    found: dict[str, list[Span]] = {}
    for each in commit.set_aside:
        found.setdefault(each.reason, []).extend(
            Span(topic_id=r.topic_id, partition=r.partition, start=r.start, end=r.end)
            for r in each.ranges
        )
    return found


def _advance(before: Slot, slot: Slot) -> Applied:
    """Do steps 3 to 8 of the module for a slot that has just received a fact. `before` is the slot
    without it."""
    definition = slot.definition
    if definition is None:  # and so nobody knows who reads
        sinks = _limit_hops(slot.sinks, dict.fromkeys(slot.sinks, 0))
        return Applied(slot=replace(slot, sinks=sinks), progress=())
    slot, dead = count(slot)
    graph = Graph(definition, slot)
    sinks = {**slot.sinks, **settle(before, graph)}
    progress: list[Progress] = []
    known = all_known(slot, graph.sinks)
    for sink in graph.sinks if known else ():
        state = sinks[sink.key]
        reached = join(state.reached, graph.root_position(sink))
        if reached == state.reached:
            continue
        if state.batch is None:  # this is only where the sink starts
            sinks[sink.key] = replace(state, reached=reached)
            continue
        sinks[sink.key] = replace(state, reached=reached, steps=state.steps + 1)
        progress.append(_progress(sink, state, state.batch, reached))
    sinks = _limit_hops(sinks, _count_passed(graph, sinks) if known else dict.fromkeys(sinks, 0))
    return Applied(slot=replace(slot, sinks=sinks), progress=tuple(progress), dead=dead)


def _count_passed(graph: Graph, sinks: Mapping[str, SinkState]) -> dict[str, int]:
    """Return by sink how many hops no reader needs any more. Where no stage reads, these are all
    but the last. `_advance` does not ask while dead letters are missing, because then any hop may
    be needed."""
    return {key: graph.passed.get(key, max(len(state.hops) - 1, 0)) for key, state in sinks.items()}


def _limit_hops(sinks: dict[str, SinkState], passed: Mapping[str, int]) -> dict[str, SinkState]:
    hops = thin_out({key: state.hops for key, state in sinks.items()}, passed)
    return {
        key: state if hops[key] == state.hops else replace(state, hops=hops[key])
        for key, state in sinks.items()
    }


def _progress(sink: StageSink, state: SinkState, batch: BatchReport, reached: Vector) -> Progress:
    return Progress(
        sink=sink.key,
        before=state.reached,
        reached=reached,
        batch=batch,
        began=state.began,
        outputs=state.hops[-1].outputs if state.hops else None,
        gaps=state.hops[-1].gaps if state.hops else (),
        taken=None if all(i.root for i in sink.stage.inputs) else state.frontier,
        number=state.steps,
    )
