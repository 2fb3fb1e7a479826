"""What a step of a sink keeps, by which a token is followed into what reads its topic."""

from builders import make_commit, make_definition, make_input, make_sink, make_stage
from unit.token_tracker.test_core import apply
from waybill_shared.contract.events import Commit, Definition
from waybill_shared.contract.slots import Progress
from waybill_shared.contract.vectors import Span, Vector

LINE = make_definition(
    make_stage(
        "enrich",
        inputs=(make_input("orders", topic_id="R", root=True),),
        sinks=(make_sink("middle", topic_id="A", terminal=False),),
    ),
    make_stage(
        "load",
        inputs=(make_input("middle", topic_id="A", root=False),),
        sinks=(make_sink("out", topic_id="B"),),
    ),
)


def first(frontier: int, end: int, sequence: int, *gaps: tuple[int, int]) -> Commit:
    return make_commit(
        {("R", 0): frontier},
        sink="middle",
        outputs={("A", 0): end},
        gaps=[Span(topic_id="A", partition=0, start=s, end=e) for s, e in gaps],
        sequence=sequence,
    )


def second(frontier: int, end: int, sequence: int) -> Commit:
    return make_commit(
        {("A", 0): frontier}, stage="load", sink="out", outputs={("B", 0): end}, sequence=sequence
    )


def steps(sink: str, *bodies: Definition | Commit) -> list[Progress]:
    slot, found = apply(LINE).slot, []
    for body in bodies:
        applied = apply(body, slot=slot)
        slot = applied.slot
        found += [each for each in applied.progress if each.sink == sink]
    return found


def at(offsets: Vector | None, topic_id: str) -> int:
    return (offsets or {})[topic_id, 0]


def test_a_step_says_how_far_its_topic_was_written_and_which_it_is() -> None:
    found = steps("enrich/middle@1", first(5, 9, 0, (0, 4)), first(8, 12, 1, (0, 4), (9, 10)))
    assert [(at(step.outputs, "A"), step.number) for step in found] == [(9, 0), (12, 1)]
    assert [at(step.began, "A") for step in found] == [4, 4]
    assert [step.taken for step in found] == [None, None]


def test_a_commit_that_comes_late_makes_no_step() -> None:
    found = steps("enrich/middle@1", first(8, 12, 1), first(5, 9, 0), first(9, 13, 2))
    assert [(at(step.outputs, "A"), step.number) for step in found] == [(12, 0), (13, 1)]


def test_a_step_behind_another_stage_says_what_it_had_taken() -> None:
    """What it took of the second hop counts in root offsets only when that hop is heard of."""
    found = steps("load/out@1", first(5, 9, 0), second(12, 7, 0), first(8, 12, 1))
    assert [at(step.reached, "R") for step in found] == [5, 8]
    assert [(at(step.taken, "A"), at(step.outputs, "B")) for step in found] == [(12, 7), (12, 7)]
    assert [step.number for step in found] == [0, 1]
