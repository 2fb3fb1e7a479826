"""Records that a stage cannot process: buried once, left out of every sink that lacks them."""

from pathlib import Path
from typing import cast

import pytest

from unit.waybill_spark.bench import NO_FRAME
from unit.waybill_spark.graveyard import Graveyard, PickySink
from waybill_shared.contract.errors import Retryable
from waybill_spark.tracking.dead_letters.bisecting import NoRecordAtFault
from waybill_spark.tracking.dead_letters.budget import Budget
from waybill_spark.tracking.rewinding import Rewind
from waybill_spark.tracking.sink import SinkSuperseded
from waybill_spark.tracking.stopping import StageStopped

FIRST, SECOND = "load/first@1", "load/second@1"


@pytest.fixture(params=[0, 2, 100], ids=["read", "few planned", "planned"])
def graveyard(tmp_path: Path, request: pytest.FixtureRequest) -> Graveyard:
    return Graveyard(tmp_path, plans_up_to=request.param)


def refuse(sink: object, *numbers: int) -> None:
    cast(PickySink, sink).refusing |= set(numbers)


def test_a_malformed_record_is_buried_and_its_neighbours_go_on(graveyard: Graveyard) -> None:
    graveyard.malformed = {2}
    graveyard.run(0, end=5)
    assert graveyard.first.numbers == graveyard.second.numbers == [0, 1, 3, 4]
    assert graveyard.buried() == [(2, "malformed", None)]


def test_a_clean_batch_is_read_once(graveyard: Graveyard) -> None:
    graveyard.run(0, end=5)
    assert (graveyard.reads, graveyard.journal.fences) == (1, [])


def test_commits_say_which_dead_letters_they_go_past(graveyard: Graveyard) -> None:
    graveyard.malformed = {2}
    graveyard.run(0, end=5)
    assert {commit.batch.dead_sequence for commit in graveyard.commits} == {1}
    graveyard.run(1, end=8)
    assert {commit.batch.dead_sequence for commit in graveyard.commits} == {1}


def test_nothing_is_in_a_sink_when_the_journal_fails(graveyard: Graveyard) -> None:
    graveyard.malformed, graveyard.journal.dying = {2}, True
    with pytest.raises(Retryable):
        graveyard.run(0, end=5)
    assert graveyard.first.ranges == graveyard.second.ranges == []


@pytest.mark.parametrize("budget", [Budget(100, 1), Budget(1, 60_000)])
def test_what_is_gone_before_it_can_be_buried_passes_no_sink(
    graveyard: Graveyard, budget: Budget
) -> None:
    """Nor would anybody tell of it."""
    graveyard.malformed, graveyard.gone, graveyard.budget = {1, 3}, {1}, budget
    with pytest.raises(Retryable, match=r"1 of 2|0 of 1"):
        graveyard.run(0, end=5)
    assert graveyard.journal.fences == graveyard.first.fences == graveyard.second.fences == []


def test_a_batch_that_comes_again_buries_nothing_again(graveyard: Graveyard) -> None:
    """Also when what is dead would be taken now: it was told."""
    graveyard.malformed, graveyard.first.failing = {2}, {1}
    with pytest.raises(Retryable):
        graveyard.run(0, end=5)
    graveyard.malformed = set()
    graveyard.run(0, end=5)
    assert graveyard.first.numbers == graveyard.second.numbers == [0, 1, 3, 4]
    assert graveyard.buried() == [(2, "malformed", None)]


def test_a_longer_batch_leaves_out_what_is_buried_and_adds_what_else_dies(
    graveyard: Graveyard,
) -> None:
    graveyard.malformed, graveyard.first.failing, graveyard.second.failing = {2, 6}, {1}, {1}
    with pytest.raises(Retryable):
        graveyard.run(0, end=5)
    graveyard.malformed = {6}
    graveyard.run(0, end=8)
    assert graveyard.first.numbers == graveyard.second.numbers == [0, 1, 3, 4, 5, 7]
    assert [offset for offset, _, _ in graveyard.buried()] == [2, 6]
    (entry,) = graveyard.journal.fences[-1].dead
    assert entry.offsets == (2, 6)


def test_a_shorter_batch_keeps_what_is_buried_behind_it(graveyard: Graveyard) -> None:
    graveyard.malformed, graveyard.first.failing, graveyard.second.failing = {1, 6}, {1}, {1}
    with pytest.raises(Retryable):
        graveyard.run(0, end=8)
    graveyard.malformed = {2}
    graveyard.run(0, end=4)
    graveyard.malformed = set()
    graveyard.run(1, end=8)
    assert graveyard.first.numbers == [0, 3, 4, 5, 7]
    assert [offset for offset, _, _ in graveyard.buried()] == [1, 6, 2]


def test_entries_keep_only_what_some_sink_has_not_passed(graveyard: Graveyard) -> None:
    graveyard.malformed = {2, 7}
    graveyard.run(0, end=5)
    graveyard.run(1, end=8)
    assert [each.offsets for each in graveyard.journal.fences[-1].dead] == [(7,)]


def test_the_records_at_which_a_query_ends_are_found(graveyard: Graveyard) -> None:
    graveyard.failing, graveyard.malformed = {3, 12}, {5}
    graveyard.run(0, end=16)
    assert graveyard.buried() == [(3, "failed", None), (12, "failed", None), (5, "malformed", None)]
    assert graveyard.first.numbers == [o for o in range(16) if o not in {3, 5, 12}]


def test_a_query_that_passes_in_parts_is_the_fault_of_no_record(graveyard: Graveyard) -> None:
    graveyard.failing = {3}
    stage = graveyard.stage()
    graveyard.plan(0, end=8)
    give = graveyard._give

    def fail_once(*args: object) -> object:
        try:
            return give(*args)  # type: ignore[arg-type]
        finally:
            graveyard.failing = set()

    graveyard._give = fail_once  # type: ignore[method-assign, assignment]
    with pytest.raises(Retryable, match="passes when it is tried again"):
        stage.process(NO_FRAME, 0)
    assert graveyard.journal.fences == graveyard.first.fences == []


def test_what_one_sink_refuses_stays_in_the_other(graveyard: Graveyard) -> None:
    refuse(graveyard.second, 3, 4)
    graveyard.run(0, end=6)
    assert graveyard.first.numbers == [0, 1, 2, 3, 4, 5]
    assert graveyard.second.numbers == [0, 1, 2, 5]
    assert graveyard.buried() == [(3, "refused", SECOND), (4, "refused", SECOND)]
    by_sink = {commit.sink: commit.batch.dead_sequence for commit in graveyard.commits}
    assert by_sink == {"first": 0, "second": 1}


def test_what_was_refused_once_never_comes_to_that_sink(graveyard: Graveyard) -> None:
    """Though it would take it now: nobody is both dead and there."""
    refuse(graveyard.second, 3)
    graveyard.second.failing = {1}
    with pytest.raises(Retryable):
        graveyard.run(0, end=6)
    cast(PickySink, graveyard.second).refusing.clear()
    graveyard.run(0, end=6)
    assert graveyard.first.numbers == [0, 1, 2, 3, 4, 5]
    assert graveyard.second.numbers == [0, 1, 2, 4, 5]
    assert graveyard.buried() == [(3, "refused", SECOND)]


def test_what_one_sink_refused_is_not_buried_again_for_it_when_it_cannot_be_read(
    graveyard: Graveyard,
) -> None:
    refuse(graveyard.second, 3)
    graveyard.second.failing = {1}
    with pytest.raises(Retryable):
        graveyard.run(0, end=6)
    graveyard.malformed = {3, 4}
    graveyard.run(0, end=6)
    assert graveyard.buried() == [(3, "refused", SECOND), (4, "malformed", SECOND)]
    assert graveyard.first.numbers == [0, 1, 2, 3, 4, 5]
    assert graveyard.second.numbers == [0, 1, 2, 5]


def test_what_one_sink_refused_and_dies_after_a_rewind_is_dead_for_the_others(
    graveyard: Graveyard,
) -> None:
    refuse(graveyard.second, 3)
    graveyard.run(0, end=6)
    graveyard.rewind = Rewind(number=1, starts={("T1", 0): 2})
    graveyard.started()
    graveyard.malformed = {3, 4}
    graveyard.plan(0, end=6, start=2)
    graveyard.stage().process(NO_FRAME, 0)
    first, *again = graveyard.buried()
    assert first == (3, "refused", SECOND)
    assert again == [(3, "malformed", FIRST), (4, "malformed", None)]
    assert graveyard.first.numbers == [0, 1, 2, 3, 4, 5, 2, 5]
    assert graveyard.second.numbers == [0, 1, 2, 4, 5, 2, 5]


def test_of_what_a_sink_refuses_only_together_the_last_is_dead(graveyard: Graveyard) -> None:
    """Also beside what it refuses alone, near and far."""
    refuse(graveyard.second, 9)
    cast(PickySink, graveyard.second).clashing = ({1, 14}, {4, 5, 6}, {6, 15}, {2, 9})
    graveyard.run(0, end=16)
    assert graveyard.second.numbers == [o for o in range(16) if o not in {6, 9, 14}]
    assert sorted(graveyard.buried()) == [(o, "refused", SECOND) for o in (6, 9, 14)]
    assert graveyard.first.numbers == [*range(16)]


def test_a_sink_that_refuses_nothing_at_all_is_no_records_fault(graveyard: Graveyard) -> None:
    cast(PickySink, graveyard.second).clashing = (set(),)
    with pytest.raises(NoRecordAtFault, match="without any of its records"):
        graveyard.run(0, end=4)


def test_both_sinks_may_refuse_the_same(graveyard: Graveyard) -> None:
    refuse(graveyard.first, 3)
    refuse(graveyard.second, 3)
    graveyard.run(0, end=6)
    assert graveyard.buried() == [(3, "refused", FIRST), (3, "refused", SECOND)]
    assert graveyard.first.numbers == graveyard.second.numbers == [0, 1, 2, 4, 5]


def test_what_dies_when_one_sink_has_the_batch_is_dead_in_the_other_only(
    graveyard: Graveyard,
) -> None:
    """As when the manifest was changed between the two."""
    graveyard.second.failing = {0}
    with pytest.raises(Retryable):
        graveyard.run(0, end=5)
    graveyard.malformed = {2}
    graveyard.run(0, end=5)
    assert graveyard.first.numbers == [0, 1, 2, 3, 4]
    assert graveyard.second.numbers == [0, 1, 3, 4]
    assert graveyard.buried() == [(2, "malformed", SECOND)]


def test_a_sink_that_is_levelled_gets_nothing_that_is_buried(graveyard: Graveyard) -> None:
    """The checkpoint is lost between the sinks of a batch."""
    graveyard.malformed, graveyard.second.failing = {2}, {1}
    with pytest.raises(Retryable):
        graveyard.run(0, end=5)
    graveyard.malformed = set()
    for path in sorted(graveyard.folder.rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    graveyard.started()
    assert graveyard.second.numbers == [0, 1, 3, 4]
    assert graveyard.buried() == [(2, "malformed", None)]


def test_beyond_the_budget_the_stage_stops_before_the_first_that_is_too_many(
    graveyard: Graveyard,
) -> None:
    graveyard.malformed, graveyard.budget = {1, 2, 3}, Budget(2, 60_000)
    with pytest.raises(StageStopped, match=r"dead_letter_budget: .* 3 record.*one is orders.in"):
        graveyard.run(0, end=5)
    assert graveyard.buried() == [(1, "malformed", None), (2, "malformed", None)]
    assert graveyard.first.numbers == graveyard.second.numbers == [0]


def test_the_budget_counts_over_batches(graveyard: Graveyard) -> None:
    graveyard.malformed, graveyard.budget = {1, 2, 6}, Budget(2, 60_000)
    graveyard.run(0, end=5)
    with pytest.raises(StageStopped, match="dead_letter_budget"):
        graveyard.run(1, end=8)
    graveyard.budget = Budget(2, 60_000)  # of the next start
    graveyard.run(1, end=8)
    assert graveyard.first.numbers == [0, 3, 4, 5, 7]


def test_no_more_records_are_looked_for_than_the_budget_has(graveyard: Graveyard) -> None:
    graveyard.failing, graveyard.budget = set(range(64)), Budget(2, 60_000)
    with pytest.raises(StageStopped, match="dead_letter_budget"):
        graveyard.run(0, end=64)
    assert graveyard.reads < 20


def test_a_paused_driver_buries_nothing_behind_a_newer_one(graveyard: Graveyard) -> None:
    graveyard.malformed = {2}
    graveyard.plan(0, end=5)
    paused = graveyard.stage()
    graveyard.malformed = set()
    graveyard.run(0, end=5)
    graveyard.malformed = {2}
    graveyard.plan(1, end=8)
    with pytest.raises(SinkSuperseded):
        paused.process(NO_FRAME, 0)
    assert graveyard.journal.fences == []


def test_a_paused_driver_writes_nothing_that_a_newer_one_has_buried(graveyard: Graveyard) -> None:
    """Also where a claim shuts nobody out, and the newer one has written nothing yet."""
    graveyard.run(0, end=5)
    graveyard.plan(1, end=8)
    paused = graveyard.stage()
    graveyard.malformed, graveyard.first.failing = {6}, {2}
    with pytest.raises(Retryable):
        graveyard.run(1, end=8)
    graveyard.malformed = set()
    with pytest.raises(SinkSuperseded):
        paused.process(NO_FRAME, 1)
    assert graveyard.buried() == [(6, "malformed", None)]
    graveyard.run(1, end=8)
    assert graveyard.first.numbers == graveyard.second.numbers == [0, 1, 2, 3, 4, 5, 7]


def test_who_holds_its_sinks_moves_their_fences_no_more(graveyard: Graveyard) -> None:
    graveyard.malformed = {2, 6}
    graveyard.plan(0, end=5)
    stage = graveyard.stage()
    stage.process(NO_FRAME, 0)
    graveyard.plan(1, end=8)
    stage.process(NO_FRAME, 1)
    assert len(graveyard.buried()) == 2
    assert [fence.batch.batch_id for fence in graveyard.first.fences] == [-1, 0, 1]


def test_sinks_that_are_past_an_entry_that_is_gone_stop_the_stage(graveyard: Graveyard) -> None:
    graveyard.malformed = {2}
    graveyard.run(0, end=5)
    graveyard.journal.fences.clear()
    with pytest.raises(StageStopped, match="checkpoint_diverged"):
        graveyard.stage()
