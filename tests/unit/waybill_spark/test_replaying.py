"""Dead letters that come back: once, into the sinks that lack them, and nothing else moves."""

from dataclasses import replace
from pathlib import Path

import pytest

from unit.waybill_spark.bench import NO_FRAME
from unit.waybill_spark.graveyard import Graveyard, PickySink
from unit.waybill_spark.letters import (
    AT,
    BOTH,
    FIRST,
    REPLAYS_ID,
    SECOND,
    Letters,
    again,
    replayed,
)
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.words import LossReason
from waybill_spark.tracking.dead_letters.budget import Budget
from waybill_spark.tracking.dead_letters.letters import letter_of
from waybill_spark.tracking.replaying import LETTERS_MAX, in_batches
from waybill_spark.tracking.rewinding import Replacing
from waybill_spark.tracking.sink import SinkSuperseded
from waybill_spark.tracking.stopping import StageStopped

PLACE = ("T1", 0)


@pytest.fixture
def graveyard(tmp_path: Path) -> Graveyard:
    """Of batch [0, 6) the records 1 and 4 died; then the query was mended."""
    graveyard = Graveyard(tmp_path)
    graveyard.failing = {1, 4}
    graveyard.run(0, end=6)
    graveyard.failing = set()
    graveyard.journal.buried.clear()
    return graveyard


@pytest.fixture
def letters(graveyard: Graveyard) -> Letters:
    return Letters(graveyard)


def test_a_letter_goes_into_the_sinks_that_it_names(graveyard: Graveyard, letters: Letters) -> None:
    letters.ask(1)
    letters.ask(4, sinks=[SECOND])
    graveyard.stage().replay(letters.replays(), letters)
    assert graveyard.first.numbers == [0, 2, 3, 5, 1]
    assert graveyard.second.numbers == [0, 2, 3, 5, 1, 4]


def test_neither_frontier_nor_position_nor_batch_moves(
    graveyard: Graveyard, letters: Letters
) -> None:
    letters.ask(1, 4)
    before = graveyard.first.fences[-1]
    graveyard.stage().replay(letters.replays(), letters)
    after = graveyard.first.fences[-1]
    assert (after.frontier, after.position, after.inputs, after.batches) == (
        before.frontier,
        before.position,
        before.inputs,
        before.batches,
    )
    assert (after.batch.batch_id, after.batch.lineage) == (
        before.batch.batch_id,
        before.batch.lineage,
    )
    assert after.batch.sequence == before.batch.sequence + 1
    assert after.batch.rows == 2
    assert replayed(after) == 2


def test_spark_may_repeat_the_batch_before(graveyard: Graveyard, letters: Letters) -> None:
    """It has not noted the end of its batch: the sinks still say that they have it."""
    letters.ask(1)
    stage = graveyard.stage()
    stage.replay(letters.replays(), letters)
    stage.process(NO_FRAME, 0)
    assert graveyard.first.numbers == [0, 2, 3, 5, 1]
    assert graveyard.started() == {}


def test_the_next_batch_follows(graveyard: Graveyard, letters: Letters) -> None:
    letters.ask(1)
    graveyard.stage().replay(letters.replays(), letters)
    graveyard.run(1, end=8)
    assert graveyard.first.numbers == [0, 2, 3, 5, 1, 6, 7]
    assert replayed(graveyard.first.fences[-1]) == 1


def test_no_driver_does_it_again(graveyard: Graveyard, letters: Letters) -> None:
    letters.ask(1, 4)
    for _ in range(3):
        graveyard.stage().replay(letters.replays(), letters)
    assert again(graveyard.first, [1, 4]) == again(graveyard.second, [1, 4]) == [1, 1]
    assert letters.found == [1, 4], "nothing is read again either"


def test_who_asks_twice_gets_it_twice(graveyard: Graveyard, letters: Letters) -> None:
    letters.ask(1)
    letters.ask(1)
    graveyard.stage().replay(letters.replays(), letters)
    assert again(graveyard.first, [1]) == [2]


@pytest.mark.parametrize("upto", [1, 2])
def test_a_driver_that_fails_between_two_sinks_leaves_the_second_to_the_next(
    graveyard: Graveyard, letters: Letters, upto: int
) -> None:
    """It may have read fewer messages than the next one."""
    letters.ask(1, 4)
    graveyard.second.failing = {graveyard.second.fences[-1].batch.sequence + 1}
    with pytest.raises(Retryable):
        graveyard.stage().replay(letters.replays(upto), letters)
    assert again(graveyard.second, [1, 4]) == [0, 0]
    graveyard.stage().replay(letters.replays(), letters)
    assert again(graveyard.first, [1, 4]) == again(graveyard.second, [1, 4]) == [1, 1]


def test_a_driver_of_before_cannot_do_it(graveyard: Graveyard, letters: Letters) -> None:
    letters.ask(1)
    before = graveyard.stage()
    graveyard.stage().replay(letters.replays(), letters)
    with pytest.raises(SinkSuperseded):
        before.replay(letters.replays(), letters)
    assert again(graveyard.first, [1]) == [1]


def test_every_sink_says_how_far_it_is(graveyard: Graveyard, letters: Letters) -> None:
    """A sink that no letter names says so without a move of its fence."""
    letters.ask(1, sinks=[FIRST])
    stage = graveyard.stage()
    moves = len(graveyard.second.fences)
    stage.replay(letters.replays(), letters)
    assert len(graveyard.second.fences) == moves
    assert {each.sink: each.replayed for each in graveyard.commits} == {
        "first": {AT: letters.end},
        "second": {AT: letters.end},
    }
    assert stage.replays_done() == [{AT: letters.end}] * 2


def test_the_next_batch_notes_it_in_the_fence(graveyard: Graveyard, letters: Letters) -> None:
    letters.ask(1, sinks=[FIRST])
    stage = graveyard.stage()
    stage.replay(letters.replays(), letters)
    graveyard.plan(1, 8)
    stage.process(NO_FRAME, 1)
    assert replayed(graveyard.second.fences[-1]) == letters.end


def test_what_readers_cannot_see_yet_is_not_reported(
    graveyard: Graveyard, letters: Letters
) -> None:
    letters.ask(1)
    stage = graveyard.stage()
    graveyard.first.hidden = True
    stage.replay(letters.replays(), letters)
    assert {each.sink for each in graveyard.commits} == {"second"}
    graveyard.first.hidden = False
    stage.watch()
    assert graveyard.commits[-1].replayed == {AT: letters.end}


def test_who_dies_again_is_a_new_letter(graveyard: Graveyard, letters: Letters) -> None:
    graveyard.malformed, graveyard.failing = {1}, {4}
    letters.ask(0, 1, 4, 5)
    graveyard.stage().replay(letters.replays(), letters)
    assert graveyard.buried() == [(4, "failed", None), (1, "malformed", None)]
    assert again(graveyard.first, [0, 1, 4, 5]) == [2, 0, 0, 2]
    facts = [letter_of(each, "T1", ("dlq", 0, 7)) for each in graveyard.journal.buried]
    assert [(each.offset, each.replayed and each.replayed.offset) for each in facts] == [
        (4, 2),
        (1, 1),
    ]


def test_who_dies_again_is_written_once(graveyard: Graveyard, letters: Letters) -> None:
    """The driver fails after the journal; then the record would live."""
    graveyard.malformed = {1}
    letters.ask(1, 4)
    graveyard.first.failing = {graveyard.first.fences[-1].batch.sequence + 2}  # behind the claim
    with pytest.raises(Retryable):
        graveyard.stage().replay(letters.replays(), letters)
    graveyard.malformed = set()
    graveyard.stage().replay(letters.replays(), letters)
    assert graveyard.buried() == [(1, "malformed", None)]
    assert again(graveyard.first, [1, 4]) == again(graveyard.second, [1, 4]) == [0, 1]


def test_what_one_sink_refuses_is_dead_for_this_one(graveyard: Graveyard, letters: Letters) -> None:
    assert isinstance(graveyard.first, PickySink)
    graveyard.first.refusing = {4}
    letters.ask(1, 4)
    graveyard.stage().replay(letters.replays(), letters)
    assert graveyard.buried() == [(4, "refused", FIRST)]
    assert again(graveyard.first, [1, 4]) == [1, 0]
    assert again(graveyard.second, [1, 4]) == [1, 1]


def test_one_that_dies_only_for_some_names_them(graveyard: Graveyard, letters: Letters) -> None:
    graveyard.malformed = {1}
    letters.ask(1, sinks=[SECOND])
    graveyard.stage().replay(letters.replays(), letters)
    assert graveyard.buried() == [(1, "malformed", SECOND)]


def test_the_same_record_may_die_again_and_again(graveyard: Graveyard, letters: Letters) -> None:
    graveyard.malformed = {1}
    letters.ask(1)
    graveyard.stage().replay(letters.replays(), letters)
    letters.ask(1)
    graveyard.stage().replay(letters.replays(), letters)
    assert graveyard.buried() == [(1, "malformed", None)] * 2
    of_replays = [p for p in graveyard.journal.fences[-1].dead if p.topic_id == REPLAYS_ID]
    assert [p.offsets for p in of_replays] == [(2,)], "every sink is past the first one"


def test_no_budget_stops_a_replay_and_none_counts(graveyard: Graveyard, letters: Letters) -> None:
    """Each driver after it would stop there, too."""
    graveyard.budget = Budget(3, 60_000)
    graveyard.malformed, graveyard.failing = set(range(10, 15)), {20, 21}
    letters.ask(*range(10, 15), 20, 21)
    stage = graveyard.stage()
    stage.replay(letters.replays(), letters)
    assert len(graveyard.buried()) == 7
    assert graveyard.budget.remaining(5) == 3


def test_batches_leave_out_what_died_in_them_and_not_what_died_in_replays(
    graveyard: Graveyard, letters: Letters
) -> None:
    graveyard.malformed = {1}
    letters.ask(1)
    graveyard.stage().replay(letters.replays(), letters)
    graveyard.run(1, end=9)
    assert graveyard.first.numbers == [0, 2, 3, 5, 6, 7, 8]
    assert {p.topic_id for p in graveyard.journal.fences[-1].dead} <= {"T1", REPLAYS_ID}


def test_a_letter_that_is_gone_is_set_aside(graveyard: Graveyard, letters: Letters) -> None:
    letters.gone = {2, 3}
    letters.ask(1, 2, 3, 4, sinks=[FIRST])
    graveyard.stage().replay(letters.replays(), letters)
    assert again(graveyard.first, [1, 2, 3, 4]) == [1, 1, 1, 1]  # 2 and 3 are of their batch
    (aside,) = graveyard.first.fences[-1].set_aside
    assert aside.reason == LossReason.RETENTION_PASSED
    assert [(run.topic_id, run.start, run.end) for run in aside.ranges] == [(REPLAYS_ID, 1, 3)]
    assert graveyard.first.fences[-1].frontier == {PLACE: 6}
    assert graveyard.started() == {}


def test_a_sink_that_went_is_no_matter(graveyard: Graveyard, letters: Letters) -> None:
    letters.ask(1, sinks=["load/first@0", SECOND])
    graveyard.stage().replay(letters.replays(), letters)
    assert again(graveyard.first, [1]) == [0]
    assert again(graveyard.second, [1]) == [1]


def test_a_sink_that_each_batch_replaces_gets_nothing(
    graveyard: Graveyard, letters: Letters
) -> None:
    letters.ask(1)
    graveyard.replacing = {"first": Replacing.BY_BATCH}
    with pytest.raises(StageStopped, match="contain nothing else"):
        graveyard.stage().replay(letters.replays(), letters)
    assert again(graveyard.first, [1]) == again(graveyard.second, [1]) == [0]


def test_runs_end_where_sinks_change_or_a_place_returns(letters: Letters) -> None:
    letters.ask(1, 4)
    letters.ask(5, sinks=[FIRST])
    letters.ask(6, sinks=[*reversed(BOTH)])
    letters.ask(6, topic_id="T0")
    letters.ask(7, sinks=BOTH)
    runs = in_batches(letters.messages)
    assert [[each.asked.letter.source for each in run] for run in runs] == [
        [1, 4],
        [5],
        [6],
        [6, 7],
    ]


def test_runs_are_not_too_large(letters: Letters) -> None:
    letters.ask(*range(LETTERS_MAX + 1))
    assert [len(run) for run in in_batches(letters.messages)] == [LETTERS_MAX, 1]
    large = [
        replace(each, asked=replace(each.asked, size=20_000_000)) for each in letters.messages[:3]
    ]
    assert [len(run) for run in in_batches(large)] == [1, 1, 1]


def test_rows_of_a_replay_go_with_the_topic_of_their_sink(
    graveyard: Graveyard, letters: Letters
) -> None:
    letters.ask(1, sinks=[FIRST])
    graveyard.first.hidden = True  # by an open transaction: nobody has seen the row
    graveyard.stage().replay(letters.replays(), letters)
    graveyard.first.hidden = False
    graveyard.generation, graveyard.first.moved = 2, 2
    graveyard.started()
    last = [commit for commit in graveyard.commits if commit.sink == "first"][-1]
    lost = [run for each in last.set_aside for run in each.ranges if run.topic_id == REPLAYS_ID]
    assert [(run.start, run.end) for run in lost] == [(0, 1)]
    assert last.frontier.keys() & last.replayed.keys() == set()
