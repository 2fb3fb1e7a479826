"""The outcome of a replay: it waits for the sinks that it names and those after them, no others."""

from dataclasses import replace

import pytest

from builders import make_sink
from clocks import NOW
from unit.status.slots import (
    COPY,
    ENRICH,
    KEY,
    LOAD,
    burying,
    dead,
    life,
    losing,
    slot,
    stages_of,
    view,
    with_stages,
)
from waybill_shared.contract.lifecycle_events import Condition
from waybill_shared.contract.replays import entrance
from waybill_shared.contract.slots import DeadEntry, DeadSource, Slot
from waybill_shared.contract.token_views import TokenView
from waybill_shared.contract.tokens import Part, pipeline_id
from waybill_shared.contract.vectors import ENDLESS, Span
from waybill_shared.contract.words import OutcomeKind
from waybill_status.core.outcomes.claims import Claim
from waybill_status.core.outcomes.dead_letters import DeadOffset, dead_records_of
from waybill_status.core.outcomes.judge import judge
from waybill_status.core.outcomes.judgements import Judgement, dead_lettered
from waybill_status.core.outcomes.needs import needs_of

P = "cmVwbGF5cy5yZXBsYXlzLg"
"""The id of `waybill.replays`."""
AT_ENRICH = entrance(P, "enrich@1")


def at(start: int, end: int) -> Span:
    return Span(topic_id=P, partition=3, start=start, end=end)


def asked(*into: str, span: Span | None = None, generation: int = 1, sinks: str = "") -> Claim:
    part = Part(
        pipeline_id=pipeline_id(*KEY),
        generation=generation,
        spans=(span or at(5, 7),),
        into=into,
    )
    view = TokenView(sinks=tuple(sinks.split()))
    return Claim(pipeline=KEY, name="orders", parts=(part,), asked=view)


def of_entrances(sink: str, end: int) -> dict[tuple[str, int], int]:
    """Return what the sink has of letters of its own stage, and of the stage before."""
    stages = ("enrich@1", "load@1") if sink == "lake" else ("enrich@1",)
    return {(entrance(P, stage), 3): end for stage in stages}


def content(**ends: int) -> Slot:
    """Up to where each sink has its replays; what they have of the input is no matter."""
    known = slot(enriched=(1,), copy=(1,), lake=(1,))
    keys = {"enriched": ENRICH, "copy": COPY, "lake": LOAD}
    sinks = {
        keys[name]: replace(
            known.sinks[keys[name]],
            reached={**known.sinks[keys[name]].reached, **of_entrances(name, end)},
        )
        for name, end in ends.items()
    }
    return replace(known, sinks={**known.sinks, **sinks})


def judged(claim: Claim, content: Slot, *entries: DeadEntry) -> Judgement:
    judgement = judge(claim, view(burying(content, *entries)))
    return dead_lettered(judgement, dead_records_of(judgement.dead_asked, entries, cut=False))


def buried(offset: int, *, replayed: bool = True, stage: str = "enrich@1") -> DeadEntry:
    entry = replace(dead(offset, stage=stage), topic_id=AT_ENRICH, partition=3)
    source = DeadSource(topic="orders.in", topic_id="T", partition=0, offset=41)
    return replace(entry, source=source) if replayed else replace(entry, exact=False)


def test_it_waits_for_the_sink_that_it_names_alone() -> None:
    assert judged(asked(COPY), content(copy=7)).kind == OutcomeKind.COMPLETE
    assert judged(asked(COPY), content(copy=6, lake=9)).kind == OutcomeKind.IN_PROGRESS
    judgement = judged(asked(COPY), content(copy=7))
    assert [[sink.name for sink in stage.sinks] for stage in judgement.stages] == [["copy"]]


def test_it_waits_for_all_that_lie_after_the_named_ones() -> None:
    for claim in (asked(ENRICH), asked(ENRICH, COPY)):
        known = content(enriched=9, copy=9, lake=6)
        assert judged(claim, known).kind == OutcomeKind.IN_PROGRESS
        known = content(enriched=9, copy=9, lake=7)
        assert judged(claim, known).kind == OutcomeKind.COMPLETE
    judgement = judged(asked(ENRICH), content(enriched=9, lake=7))
    assert [[sink.name for sink in stage.sinks] for stage in judgement.stages] == [
        ["enriched"],
        ["lake"],
    ]


def test_a_letter_of_a_later_stage_enters_there() -> None:
    assert judged(asked(LOAD), content(lake=7)).kind == OutcomeKind.COMPLETE
    judgement = judged(asked(LOAD), content(lake=7))
    assert [stage.name for stage in judgement.stages] == ["load"]


def test_it_waits_for_no_stage_before_the_one_where_it_enters() -> None:
    """Not even if that one has lost what has the same position."""
    known = content(enriched=1, lake=7)
    lake = {**known.sinks[LOAD].reached, (entrance(P, "enrich@1"), 3): 1}
    behind = {**known.sinks, LOAD: replace(known.sinks[LOAD], reached=lake)}
    known = replace(known, sinks=behind)
    lost = losing(known, LOAD, "retention_passed", replace(at(5, 7), topic_id=AT_ENRICH))
    for each in (known, lost):
        assert judged(asked(LOAD), each).kind == OutcomeKind.COMPLETE
    assert judged(asked(ENRICH), known).kind == OutcomeKind.IN_PROGRESS
    assert judged(asked(ENRICH), lost).kind == OutcomeKind.LOST


def test_it_is_asked_again_when_its_sink_gets_there() -> None:
    known = view(content(copy=5, lake=6))
    assert needs_of(asked(COPY), known)[COPY, (AT_ENRICH, 3)] == 5
    assert needs_of(asked(LOAD), known)[LOAD, (entrance(P, "load@1"), 3)] == 6


def test_what_nobody_knows_is_in_progress() -> None:
    assert judged(asked(COPY), slot(copy=(9,))).kind == OutcomeKind.IN_PROGRESS


def test_one_that_died_again_is_dead_lettered() -> None:
    judgement = judged(asked(COPY), content(copy=9), buried(5), buried(4), buried(7))
    assert judgement.kind == OutcomeKind.DEAD_LETTERED
    (found,) = judgement.dead_records.found
    assert isinstance(found, DeadOffset)
    assert (found.topic, found.partition, found.offset) == ("orders.in", 0, 41)
    assert judgement.dead_records.count == 1
    assert found.id is not None
    assert found.id.endswith(":41")


def test_what_came_from_the_stage_before_is_none_of_it() -> None:
    """A hop says of its rows only which replays they may be of."""
    entry = buried(5, replayed=False, stage="load@1")
    assert judged(asked(LOAD), content(lake=9), entry).kind == OutcomeKind.COMPLETE
    known = content(enriched=9, lake=9)
    assert judged(asked(ENRICH), known, entry).kind == OutcomeKind.DEAD_LETTERED


def test_one_that_is_gone_is_lost() -> None:
    gone = replace(at(6, 7), topic_id=AT_ENRICH)
    known = losing(content(copy=9), COPY, "retention_passed", gone)
    judgement = judged(asked(COPY), known)
    assert judgement.kind == OutcomeKind.LOST
    assert [(each.topic, each.start, each.end) for each in judgement.lost] == [("replays", 6, 7)]
    assert judged(asked(COPY, span=at(5, 6)), known).kind == OutcomeKind.COMPLETE


def test_what_was_left_when_the_topic_was_created_again_is_lost() -> None:
    known = content(copy=ENDLESS)
    rest = Span(topic_id=AT_ENRICH, partition=3, start=6, end=ENDLESS)
    known = losing(known, COPY, "topic_recreated", rest)
    assert judged(asked(COPY), known).kind == OutcomeKind.LOST
    assert judged(asked(COPY, span=at(5, 6)), known).kind == OutcomeKind.COMPLETE


def test_a_removed_sink_is_waited_for_only_if_none_is_left() -> None:
    enrich, load = stages_of(content())
    smaller = replace(enrich, sinks=enrich.sinks[:1])
    gone = {2: (replace(enrich, sinks=enrich.sinks[1:]),)}
    known = with_stages(content(copy=6, enriched=9, lake=9), smaller, load, gone=gone)
    assert judged(asked(COPY, ENRICH), known).kind == OutcomeKind.COMPLETE
    judgement = judged(asked(COPY), known)
    assert judgement.kind == OutcomeKind.LOST
    assert [each.reason for each in judgement.lost] == ["sink_removed"]
    done = with_stages(content(copy=7), smaller, load, gone=gone)
    assert judged(asked(COPY), done).kind == OutcomeKind.COMPLETE


def without_load(known: Slot) -> Slot:
    """After stage load was removed; then `enriched` is the last sink."""
    enrich, load = stages_of(known)
    return with_stages(known, enrich, gone={2: (load,)})


def test_a_sink_that_is_the_last_since_its_reader_was_removed_is_waited_for() -> None:
    waiting = without_load(content(copy=9, enriched=6, lake=6))
    assert judged(asked(ENRICH, COPY), waiting).kind == OutcomeKind.IN_PROGRESS
    done = without_load(content(copy=9, enriched=7, lake=6))
    for claim in (asked(ENRICH), asked(ENRICH, COPY)):
        judgement = judged(claim, done)
        assert judgement.kind == OutcomeKind.COMPLETE
        assert [stage.name for stage in judgement.stages] == ["enrich"]


def test_what_went_with_the_topic_of_a_sink_is_lost_unless_its_removed_reader_had_it() -> None:
    went = Span(topic_id=AT_ENRICH, partition=3, start=0, end=9)
    known = losing(content(enriched=9, lake=6), ENRICH, "sink_topic_recreated", went)
    gone = without_load(known)
    for each in (known, gone):
        assert judged(asked(ENRICH, span=at(5, 6)), each).kind == OutcomeKind.COMPLETE
    assert judged(asked(ENRICH), known).kind == OutcomeKind.IN_PROGRESS
    lost = judged(asked(ENRICH), gone).lost
    assert [(e.reason, e.start, e.end) for e in lost] == [("sink_topic_recreated", 6, 7)]


def test_what_was_lost_in_a_removed_sink_stays_lost() -> None:
    gone = replace(at(6, 7), topic_id=AT_ENRICH)
    known = losing(content(enriched=9, lake=9), LOAD, "topic_deleted", gone)
    for each in (known, without_load(known)):
        assert judged(asked(ENRICH), each).kind == OutcomeKind.LOST
    younger = asked(ENRICH, generation=2)
    assert judged(younger, without_load(known)).kind == OutcomeKind.COMPLETE


def test_a_stage_without_those_that_are_named_is_none_of_it() -> None:
    enrich, load = stages_of(content())
    smaller = replace(enrich, sinks=enrich.sinks[1:])
    gone = {2: (replace(enrich, sinks=enrich.sinks[:1]),)}
    known = with_stages(content(enriched=9, lake=9), smaller, load, gone=gone)
    judgement = judged(asked(ENRICH), known)
    assert judgement.kind == OutcomeKind.COMPLETE
    assert [stage.name for stage in judgement.stages] == ["load"]


def test_a_sink_that_was_added_later_is_no_matter() -> None:
    enrich, load = stages_of(content())
    more = replace(load, sinks=(*load.sinks, make_sink("screen", since=2)))
    known = with_stages(content(enriched=9, lake=9), enrich, more, generation=2)
    assert judged(asked(ENRICH), known).kind == OutcomeKind.COMPLETE


def test_a_deleted_pipeline_keeps_what_it_had_done() -> None:
    known = content(copy=6)
    assert known.definition is not None
    ended = replace(known, definition=replace(known.definition, deleted=True))
    assert judged(asked(COPY), ended).kind == OutcomeKind.LOST
    assert judged(asked(COPY, span=at(5, 6)), ended).kind == OutcomeKind.COMPLETE


def test_sinks_may_be_asked_for_by_name() -> None:
    known = content(enriched=9, lake=6)
    assert judged(asked(ENRICH, sinks="enriched"), known).kind == OutcomeKind.COMPLETE
    assert judged(asked(ENRICH, sinks="lake"), known).kind == OutcomeKind.IN_PROGRESS
    assert judged(asked(ENRICH, sinks="copy"), known).kind == OutcomeKind.UNKNOWN


def test_a_removed_sink_that_is_asked_for_has_it_or_will_never_have_it() -> None:
    enrich, load = stages_of(content())
    smaller = replace(enrich, sinks=enrich.sinks[:1])
    gone = {2: (replace(enrich, sinks=enrich.sinks[1:]),)}
    for copied, kind in ((6, OutcomeKind.LOST), (7, OutcomeKind.COMPLETE)):
        known = with_stages(content(copy=copied, enriched=9), smaller, load, gone=gone)
        for sinks in ("copy", "copy enriched"):
            judgement = judged(asked(COPY, ENRICH, sinks=sinks), known)
            assert (judgement.kind, judgement.named) == (kind, frozenset(sinks.split()))
            assert {each.reason for each in judgement.lost} <= {"sink_removed"}
            shown = {sink.name for stage in judgement.stages for sink in stage.sinks}
            assert shown == {"copy", "enriched", "lake"}
    assert judged(asked(COPY, ENRICH, sinks="enriched"), known).kind == OutcomeKind.COMPLETE


def test_each_letter_must_lead_to_a_sink_that_is_asked_for() -> None:
    """As each part of a merged token: nobody waits for what never comes."""
    known, one, other = content(copy=9, enriched=9, lake=9), asked(COPY), asked(ENRICH)
    for sinks, kind in (("copy", OutcomeKind.UNKNOWN), ("copy lake", OutcomeKind.COMPLETE)):
        claim = replace(asked(COPY, sinks=sinks), parts=(*one.parts, *other.parts))
        judgement = judged(claim, known)
        assert judgement.kind == kind
        assert judgement.reason == (None if kind == "complete" else "nothing_required")


@pytest.mark.parametrize("name", ["copy", "twin"])
def test_a_sink_may_be_asked_for_as_it_was(name: str) -> None:
    enrich, load = stages_of(content())
    twin = replace(enrich.sinks[1], name="twin", was=("copy",))
    known = with_stages(content(copy=7), replace(enrich, sinks=(enrich.sinks[0], twin)), load)
    claim = replace(asked(COPY, sinks=name), names={name: frozenset(["copy", "twin"])})
    assert judged(claim, known).kind == OutcomeKind.COMPLETE


@pytest.mark.parametrize(
    ("stage", "into", "expected"),
    [
        ("enrich", COPY, ["stage_failed"]),
        ("enrich", ENRICH, ["stage_failed", "stage_failed"]),
        ("enrich", LOAD, [None]),
        ("load", COPY, [None]),
        ("load", LOAD, ["stage_failed"]),
    ],
)
def test_it_says_which_stage_it_waits_for(
    stage: str, into: str, expected: list[str | None]
) -> None:
    """A letter of a later stage passes none before."""
    stopped = Condition(stage=stage, cause="stage_failed", since=NOW, message="too many die")
    known = replace(content(), lifecycle=life("Running"), conditions=(stopped,))
    judgement = judged(asked(into), known)
    assert judgement.kind == OutcomeKind.IN_PROGRESS
    assert [each.blocked_by for each in judgement.stages] == expected
