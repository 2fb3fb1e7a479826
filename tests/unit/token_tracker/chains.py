"""Pipelines of stages behind one another, what their sinks report, and what that leaves of it."""

from dataclasses import replace

from builders import (
    TENANT,
    UID,
    make_commit,
    make_definition,
    make_fact,
    make_input,
    make_range,
    make_sink,
    make_stage,
)
from waybill_shared.contract.dead_letter_facts import DeadLetters
from waybill_shared.contract.events import (
    Commit,
    Definition,
    InputDefinition,
    SetAside,
    StageDefinition,
)
from waybill_shared.contract.slots import SinkState, Slot
from waybill_shared.contract.vectors import Span, Vector
from waybill_token_tracker.core.facts import apply_fact

EMPTY = Slot(tenant=TENANT, pipeline_uid=UID)
Runs = list[tuple[str, int, int]]  # topic id, start, end; all in partition 0


def root(topic_id: str = "R", *, retired: tuple[str, ...] = (), base: int = 10) -> InputDefinition:
    return replace(make_input("orders", topic_id=topic_id, bases=(base,)), retired=retired)


def inner(topic_id: str, *, retired: tuple[str, ...] = ()) -> InputDefinition:
    return replace(make_input(topic_id, topic_id=topic_id, root=False), retired=retired)


def writing(name: str, topic_id: str, *inputs: InputDefinition) -> StageDefinition:
    return make_stage(name, inputs=inputs, sinks=(make_sink("out", topic_id=topic_id),))


def loading(*inputs: InputDefinition) -> StageDefinition:
    return make_stage("load", inputs=inputs)


ENRICH, LOAD = writing("enrich", "A", root()), loading(inner("A"))
CHAIN = make_definition(ENRICH, LOAD)
LONG = make_definition(ENRICH, writing("join", "B", inner("A")), loading(inner("B")))


def wrote(
    stage: str, taken: Vector, written: Vector, *, sequence: int = 0, gaps: Runs | None = None
) -> Commit:
    spans = [Span(topic_id=t, partition=0, start=start, end=end) for t, start, end in gaps or []]
    return make_commit(
        taken, stage=stage, sink="out", outputs=written, sequence=sequence, gaps=spans
    )


def enriched(
    taken: int, written: int | None, *, sequence: int = 0, gaps: Runs | None = None
) -> Commit:
    """Stage enrich has taken R below `taken`; its rows stand in A below `written`."""
    outputs = {} if written is None else {("A", 0): written}
    return wrote("enrich", {("R", 0): taken}, outputs, sequence=sequence, gaps=gaps)


def loaded(
    taken: Vector | int, *, sequence: int = 0, since: int = 1, version: int | None = None
) -> Commit:
    """Stage load has taken so far; a number is of A."""
    frontier = {("A", 0): taken} if isinstance(taken, int) else taken
    return make_commit(frontier, stage="load", sequence=sequence, since=since, version=version)


def without(commit: Commit, runs: Runs, *, reason: str = "retention_passed") -> Commit:
    """`commit`, whose frontier has passed `runs` without taking them."""
    ranges = tuple(make_range(start, end, topic_id=topic_id) for topic_id, start, end in runs)
    return replace(commit, set_aside=(SetAside(reason=reason, ranges=ranges),))


def apply(
    *bodies: Definition | Commit | DeadLetters, slot: Slot = EMPTY, generation: int = 1
) -> Slot:
    for body in bodies:
        slot = apply_fact(slot, make_fact(body, generation=generation)).slot
    return slot


def lost(slot: Slot, sink: str = "load/lake@1") -> dict[str, Runs]:
    return {
        reason: [(span.topic_id, span.start or 0, span.end) for span in spans]
        for reason, spans in slot.sinks[sink].lost.items()
    }


def reached(slot: Slot, sink: str = "load/lake@1") -> Vector:
    return slot.sinks.get(sink, SinkState()).reached
