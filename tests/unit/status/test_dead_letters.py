"""What is told of records that went to a dead-letter topic."""

from dataclasses import replace

import pytest

from builders import with_batch
from unit.status.slots import (
    COPY,
    ENRICH,
    KEY,
    LOAD,
    burying,
    claim,
    dead,
    losing,
    progress,
    slot,
    span,
    stages_of,
    token,
    view,
    with_stages,
)
from waybill_shared.contract.dead_letter_facts import DeadLetters
from waybill_shared.contract.slots import DeadEntry, Slot
from waybill_shared.contract.tokens import Part
from waybill_shared.contract.vectors import Span
from waybill_shared.contract.words import OutcomeKind, StateInStage
from waybill_status.core.outcomes.claims import Claim
from waybill_status.core.outcomes.dead_letters import (
    READ_MAX,
    RUNS_MAX,
    DeadOffset,
    DeadRange,
    dead_records_of,
    runs_of,
)
from waybill_status.core.outcomes.judge import judge
from waybill_status.core.outcomes.judgements import Judgement, dead_lettered
from waybill_status.core.outcomes.outcome import describe, with_less_dead

DONE = slot(enriched=(9, 9), copy=(9, 9), lake=(9, 9))
OTHER = "late@2"


def judged(asked: Claim, content: Slot, *entries: DeadEntry) -> Judgement:
    """As if all entries had been read."""
    judgement = judge(asked, view(burying(content, *entries)))
    return dead_lettered(judgement, dead_records_of(judgement.dead_asked, entries, cut=False))


def offsets_of(judgement: Judgement) -> list[tuple[int, int]]:
    """Partition and place of each, in the order in which they are told."""
    return [
        (each.partition, each.offset if isinstance(each, DeadOffset) else each.start)
        for each in judgement.dead_records.found
    ]


def test_a_token_of_which_something_died_is_dead_lettered_when_the_rest_has_arrived() -> None:
    asked = claim(span(3, 6), span(0, 2, partition=1))
    entries = dead(5), dead(3), dead(1, partition=1), dead(2), dead(6), dead(2, partition=1)
    judgement = judged(asked, DONE, *entries)
    assert judgement.kind == OutcomeKind.DEAD_LETTERED
    assert (offsets_of(judgement), judgement.dead_records.count) == ([(0, 3), (0, 5), (1, 1)], 3)
    assert judgement.dead_records.found[0] == DeadOffset(
        topic="orders.in",
        partition=0,
        offset=3,
        stage="enrich",
        sink=None,
        reason="malformed",
        rule=None,
        message="no number",
        dead_letter=replace(judgement.dead_records.found[0].dead_letter, offset=3),  # type: ignore[union-attr, type-var]
        id="orders.in.dlq:0:3:3",
    )


@pytest.mark.parametrize("beside", [span(4, 5), span(0, 3), span(3, 4, partition=1), span(3, 3)])
def test_a_token_of_other_records_is_complete(beside: Span) -> None:
    assert judged(claim(beside), DONE, dead(3), dead(5)).kind == OutcomeKind.COMPLETE


def test_what_died_so_far_is_told_of_what_is_in_progress_or_lost() -> None:
    short = slot(enriched=(9,), copy=(4,), lake=(4,))
    assert judged(claim(span(3, 6)), short, dead(3)).kind == OutcomeKind.IN_PROGRESS
    lost = losing(DONE, LOAD, "topic_deleted", span(5, 6))
    for content, kind in ((short, OutcomeKind.IN_PROGRESS), (lost, OutcomeKind.LOST)):
        judgement = judged(claim(span(3, 6)), content, dead(3))
        assert (judgement.kind, offsets_of(judgement)) == (kind, [(0, 3)])


@pytest.mark.parametrize("sink", [None, ENRICH, COPY])
def test_a_sink_that_lacks_a_record_is_named(sink: str | None) -> None:
    """One that a stage on the way reads, or that the token waits for."""
    (told,) = judged(claim(span(3, 4)), DONE, dead(3, sink=sink)).dead_records.found
    assert told.sink == {None: None, ENRICH: "enriched", COPY: "copy"}[sink]


@pytest.mark.parametrize(
    "entry", [dead(3, stage=OTHER), dead(3, sink="enrich/copy@2"), dead(3, stage="load@2")]
)
def test_what_died_where_the_token_does_not_go_is_not_its_own(entry: DeadEntry) -> None:
    assert judged(claim(span(3, 4)), DONE, entry).kind == OutcomeKind.COMPLETE


def test_a_sink_that_the_token_does_not_wait_for_says_nothing() -> None:
    """As a console beside another sink."""
    enrich, load = stages_of(DONE)
    sinks = tuple(
        replace(sink, awaited_since=2) if sink.name == "copy" else sink for sink in enrich.sinks
    )
    content = with_stages(DONE, replace(enrich, sinks=sinks), load)
    assert judged(claim(span(3, 4)), content, dead(3, sink=COPY)).kind == OutcomeKind.COMPLETE
    assert judged(claim(span(3, 4)), content, dead(3)).kind == OutcomeKind.DEAD_LETTERED


def test_a_range_stands_for_some_of_the_records_of_a_batch() -> None:
    entry = dead(2, 8, stage="load@1", sink=LOAD, up_to=4)
    judgement = judged(claim(span(0, 20)), slot(copy=(20,), lake=(20,)), entry)
    assert judgement.dead_records.found == (
        DeadRange(
            topic="orders.in",
            partition=0,
            start=2,
            end=8,
            stage="load",
            sink="lake",
            up_to=4,
            reason="malformed",
            rule=None,
            message="no number",
        ),
    )
    assert judgement.dead_records.count == 4


def test_of_a_range_no_more_died_than_the_token_has_there() -> None:
    """One hop took of two partitions, and its dead are counted once."""
    hop = [
        dead(2, 8, stage="load@1", id="hop", up_to=3),
        dead(0, 9, stage="load@1", id="hop", up_to=3, partition=1),
    ]
    one = judged(claim(span(7, 9)), DONE, *hop)
    assert (one.kind, len(one.dead_records.found), one.dead_records.count) == (
        OutcomeKind.DEAD_LETTERED,
        1,
        1,
    )
    assert judged(claim(span(0, 9), span(0, 9, 1)), DONE, *hop).dead_records.count == 3
    assert judged(claim(span(7, 9), span(0, 1, 1)), DONE, *hop).dead_records.count == 2
    assert judged(claim(span(8, 9)), DONE, *hop).kind == OutcomeKind.COMPLETE


def test_what_is_long_ago_lies_in_runs_and_nowhere_else() -> None:
    entry = dead(1, 20, up_to=4, runs=((1, 2), (5, 7), (19, 20)))
    content = slot(copy=(30,), lake=(30,))
    for asked, expected in (
        (span(0, 30), (1, 20, 4)),
        (span(0, 6), (1, 6, 2)),
        (span(5, 6), (5, 6, 1)),
    ):
        judgement = judged(claim(asked), content, entry)
        (told,) = judgement.dead_records.found
        assert isinstance(told, DeadRange)
        assert ((told.start, told.end, told.up_to), judgement.dead_records.count) == (
            expected,
            expected[2],
        )
    for beside in (span(2, 5), span(7, 19), span(20, 30), span(0, 1)):
        assert judged(claim(beside), content, entry).kind == OutcomeKind.COMPLETE


def test_a_record_that_died_twice_is_told_twice_and_counted_once() -> None:
    judgement = judged(claim(span(0, 9)), DONE, dead(3, sink=ENRICH), dead(3, sink=COPY))
    assert (len(judgement.dead_records.found), judgement.dead_records.count) == (2, 1)
    mixed = dead(3), dead(3, 4, stage="load@1", up_to=5)
    assert judged(claim(span(3, 4)), DONE, *mixed).dead_records.count == 1, "no more than it has"


def test_of_a_merged_token_each_entry_is_told_once() -> None:
    first, second = claim(span(2, 5)).parts[0], claim(span(4, 7), generation=0).parts[0]
    asked = Claim(pipeline=KEY, name="orders", parts=(first, second))
    both = Part(pipeline_id=first.pipeline_id, generation=1, spans=(span(2, 5), span(4, 7)))
    older = (
        replace(stage, sinks=tuple(replace(sink, since=0) for sink in stage.sinks))
        for stage in stages_of(DONE)
    )
    sinks = {key.replace("@1", "@0"): state for key, state in DONE.sinks.items()}
    content = replace(with_stages(DONE, *older), sinks=sinks)
    for parts in (asked, replace(asked, parts=(both,))):
        judgement = judged(parts, content, dead(4), dead(2), dead(6))
        assert (offsets_of(judgement), judgement.dead_records.count) == (
            [(0, 2), (0, 4), (0, 6)],
            3,
        )


def test_nothing_is_looked_up_where_nothing_died() -> None:
    entries = dead(3), dead(7, partition=1)
    content = view(burying(DONE, *entries))
    assert judge(claim(span(0, 9)), view(DONE)).dead_asked == ()
    asked = judge(claim(span(0, 4), span(6, 9)), content).dead_asked
    assert [(run.partition, run.start, run.end) for run in runs_of(asked, content.dead)] == [
        (0, 0, 4),
        (0, 6, 9),
    ]


def test_no_entry_is_read_twice() -> None:
    """An entry that is longer than the gap between two spans may reach into both."""
    content = view(burying(DONE, dead(2, 6, stage="load@1")))
    asked = judge(claim(span(0, 2), span(5, 6), span(10, 11)), content).dead_asked
    runs = runs_of(asked, content.dead)
    assert [(run.start, run.end) for run in runs] == [(0, 6), (10, 11)]


def test_of_many_gaps_what_lies_between_is_read_too() -> None:
    content = view(burying(DONE, dead(3)))
    spans = [span(at, at + 1) for at in range(0, 2 * RUNS_MAX + 2, 2)]
    asked = judge(claim(*spans), content).dead_asked
    (run,) = runs_of(asked, content.dead)
    assert (run.start, run.end, run.longest) == (0, 2 * RUNS_MAX + 1, 1)
    assert dead_records_of(asked, [dead(3)], cut=False).found == ()
    assert len(dead_records_of(asked, [dead(3), dead(4)], cut=False).found) == 1


def missing(content: Slot, *, waiting: str | None = None, past: str | None = None) -> Slot:
    """A slot that knows of dead letters that it has not counted."""
    if waiting is not None:
        stage, _, since = waiting.partition("@")
        letters = DeadLetters(stage=stage, since=int(since), sequence=2, letters=())
        content = replace(content, dead_waiting=(letters,))
    if past is not None:
        state = with_batch(content.sinks[past], dead_sequence=3)
        sequences = {"enrich@1": 2, "load@1": 2}
        content = replace(content, sinks={**content.sinks, past: state}, dead_sequences=sequences)
    return content


@pytest.mark.parametrize("how", [{"waiting": "load@1"}, {"past": LOAD}, {"past": ENRICH}])
def test_what_has_not_arrived_is_unknown_while_dead_letters_are_missing(
    how: dict[str, str],
) -> None:
    short = slot(enriched=(9,), copy=(9,), lake=(4,))
    judgement = judge(claim(span(3, 6)), view(missing(short, **how)))
    assert (judgement.kind, judgement.reason) == (OutcomeKind.UNKNOWN, "dead_letters_missing")
    gone = losing(short, LOAD, "topic_deleted", span(3, 4))
    assert judge(claim(span(3, 6)), view(missing(gone, **how))).kind == OutcomeKind.LOST


def test_what_has_arrived_stays_as_it_is_while_others_dead_letters_are_missing() -> None:
    """The tracker moves nothing meanwhile, so nothing that was missed has been passed."""
    content = missing(DONE, waiting="load@1", past=LOAD)
    assert judged(claim(span(3, 6)), content).kind == OutcomeKind.COMPLETE
    assert judged(claim(span(3, 6)), content, dead(3)).kind == OutcomeKind.DEAD_LETTERED


def test_what_waits_for_the_hop_that_wrote_it_is_not_missing() -> None:
    short = replace(slot(enriched=(9,), copy=(9,), lake=(4,)), dead_sequences={"load@1": 2})
    content = missing(short, waiting="load@1")
    assert judge(claim(span(3, 6)), view(content)).kind == OutcomeKind.IN_PROGRESS


def test_a_sink_that_is_past_what_was_counted_misses_nothing() -> None:
    state = with_batch(DONE.sinks[COPY], dead_sequence=2)
    content = replace(DONE, sinks={**DONE.sinks, COPY: state}, dead_sequences={"enrich@1": 2})
    assert view(content).dead_missing == frozenset()


def test_drops_are_told_of_stages_that_read_nothing_but_roots() -> None:
    enrich, load = stages_of(DONE)
    mixed = replace(load, inputs=(*load.inputs, *enrich.inputs))
    for stages, expected in (
        ((enrich, load), [{"orders"}, set()]),
        ((enrich, mixed), [{"orders"}, set()]),
    ):
        told = judge(claim(span(3, 6)), view(with_stages(DONE, *stages))).stages
        assert [set(stage.drops_of) for stage in told] == expected


def test_a_dead_lettered_outcome_names_batches_and_moment() -> None:
    judgement = judged(claim(span(3, 6)), DONE, dead(3))
    batches = {(KEY, key): progress(4, 9, at=40, sink=key).batch for key in (ENRICH, COPY, LOAD)}
    outcome = describe(token(span(3, 6)), [judgement], batches)
    assert (outcome.outcome, outcome.completed_at) == (OutcomeKind.DEAD_LETTERED, 40)
    assert {stage.state for stage in outcome.stages} == {StateInStage.DONE}
    assert (outcome.dead, outcome.dead_count) == (judgement.dead_records.found, 1)
    assert not outcome.dead_truncated


def test_what_died_in_two_pipelines_is_told_together_and_of_each() -> None:
    first = judged(claim(span(3, 6)), DONE, dead(3), dead(5))
    second = replace(judged(claim(span(3, 6)), DONE, dead(4)), name="other", pipeline=("t", "u"))
    outcome = describe(token(span(3, 6)), [first, second], {})
    assert [each.offset for each in outcome.dead if isinstance(each, DeadOffset)] == [3, 4, 5]
    assert outcome.dead_count == 3
    assert [part.dead_count for part in outcome.parts or ()] == [2, 1]
    shorter = with_less_dead(outcome, 2)
    assert [len(part.dead) for part in shorter.parts or ()] == [1, 1]
    assert (shorter.dead_truncated, shorter.dead_count, len(shorter.dead)) == (True, 3, 2)


def test_of_many_dead_letters_the_first_are_told_and_all_are_counted() -> None:
    size = READ_MAX // 2
    content = slot(copy=(size,), lake=(size,))
    judgement = judged(claim(span(0, size)), content, *map(dead, reversed(range(size))))
    outcome = describe(token(span(0, size)), [judgement], {})
    assert [each.offset for each in outcome.dead if isinstance(each, DeadOffset)] == [*range(1000)]
    assert (outcome.dead_count, outcome.dead_truncated) == (size, True)
