"""A stage that is rewound: its next batch begins earlier, and its frontier stays where it is."""

from dataclasses import replace
from pathlib import Path

import pytest

from builders import make_range
from unit.waybill_spark.bench import NO_FRAME, TOPIC, Bench, run_of
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.events import Fence, SetAside
from waybill_shared.contract.manifest.reading import read_manifest
from waybill_shared.contract.vectors import ENDLESS
from waybill_shared.contract.words import DeadReason
from waybill_spark.driver.definitions import replacing_of
from waybill_spark.tracking.dead_letters.records import DeadCause, DeadLetterRecord, RawRecord
from waybill_spark.tracking.fencing import LaterSink
from waybill_spark.tracking.pieces import in_parts
from waybill_spark.tracking.rewinding import Replacing, Rewind, joint_starts, rewound_position
from waybill_spark.tracking.stopping import StageStopped

PLACE = ("T1", 0)
EXAMPLE = (Path(__file__).parents[3] / "examples" / "orders.yaml").read_text()


def to(start: int, number: int = 1, *, forward: bool = False) -> Rewind:
    return Rewind(number=number, starts={PLACE: start}, forward=forward)


def where(fence: Fence) -> tuple[int, int, int]:
    """Number of its rewind, position and frontier."""
    return fence.rewind, fence.position[PLACE], fence.frontier[PLACE]


def aside_in(fence: Fence) -> set[int]:
    """The offsets that were set aside in its sink."""
    ranges = [run for each in fence.set_aside for run in each.ranges]
    return {offset for run in ranges for offset in range(run.start, run.end)}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """Batches [0, 4) and [4, 7) are in both sinks."""
    bench = Bench(tmp_path / "checkpoint")
    bench.run(0, 4)
    bench.run(1, 7)
    return bench


def test_a_rewind_moves_the_position_of_every_sink_and_no_frontier(bench: Bench) -> None:
    bench.rewind = to(2)
    assert bench.started() == {PLACE: 2}
    assert [where(sink.fences[-1]) for sink in (bench.first, bench.second)] == [(1, 2, 7)] * 2
    assert [(c.rewind, c.rewound, c.frontier) for c in bench.commits] == [
        (1, {PLACE: 2}, {PLACE: 7})
    ] * 2
    assert [path.name for path in bench.folder.parent.glob("*.aside-*")] == ["checkpoint.aside-1"]


def test_a_rewind_is_done_once(bench: Bench) -> None:
    bench.rewind = to(2)
    bench.started()
    bench.plan(0, 5, start=2)
    bench.stage().process(NO_FRAME, 0)
    assert where(bench.first.fences[-1]) == (1, 5, 7)
    assert bench.started() == {}


def test_one_that_was_taken_back_leaves_only_its_number(bench: Bench) -> None:
    """So whoever asks if the sink shows older rows knows that this is over."""
    bench.rewind = Rewind(number=3, starts={})
    assert bench.started() == {}
    assert [where(sink.fences[-1]) for sink in (bench.first, bench.second)] == [(3, 7, 7)] * 2
    assert [*bench.folder.parent.glob("*.aside-*")] == []


def test_rows_come_again_up_to_the_frontier_and_then_as_ever(bench: Bench) -> None:
    """No piece has both: it would not be known from which of them its rows are made."""
    bench.rewind = to(2)
    bench.started()
    bench.plan(0, 9, start=2)
    bench.stage().process(NO_FRAME, 0)
    assert bench.first.ranges == [(0, 4), (4, 7), (2, 7), (7, 9)]
    assert where(bench.first.fences[-1]) == (1, 9, 9)
    assert bench.first.fences[-1].rewound == {}


def test_a_driver_that_fails_between_two_sinks_leaves_the_second_to_the_next(bench: Bench) -> None:
    bench.rewind = to(2)
    bench.second.failing = {2}
    with pytest.raises(Retryable):
        bench.stage()
    assert where(bench.first.fences[-1]) == (1, 2, 7)
    assert where(bench.second.fences[-1]) == (0, 7, 7)
    assert bench.started() == {PLACE: 2}
    assert where(bench.second.fences[-1]) == (1, 2, 7)
    assert len(bench.first.fences) == 3


def test_the_newest_rewind_counts_where_one_before_was_not_done_everywhere(bench: Bench) -> None:
    bench.rewind = to(2)
    bench.second.failing = {2}
    with pytest.raises(Retryable):
        bench.stage()
    bench.rewind = to(5, number=2)
    assert bench.started() == {PLACE: 5}
    assert [where(sink.fences[-1]) for sink in (bench.first, bench.second)] == [(2, 5, 7)] * 2


def test_a_sink_that_comes_later_is_not_rewound_by_what_was_done_before(bench: Bench) -> None:
    bench.sinks, bench.second.fences = ("first",), []
    bench.rewind = to(2)
    bench.started()
    bench.generation, bench.sinks = 2, ("first", "second")
    bench.later = {"second": LaterSink(since=2, bases={PLACE: 6})}
    bench.second.since = 2
    assert bench.started() == {PLACE: 2}
    assert where(bench.second.fences[-1]) == (1, 2, 2)
    assert len(bench.second.fences) == 1


def test_a_stage_that_has_no_fence_remembers_the_number(tmp_path: Path) -> None:
    """Else a later start would rewind what was written meanwhile."""
    bench = Bench(tmp_path / "checkpoint", rewind=to(3))
    assert bench.started() == {PLACE: 3}
    assert where(bench.first.fences[-1]) == (1, 3, 3)


def test_what_retention_removed_is_not_read_again_and_is_not_lost(bench: Bench) -> None:
    bench.rewind, bench.log_start = to(2), 4
    assert bench.started() == {PLACE: 4}
    assert where(bench.first.fences[-1]) == (1, 4, 7)
    assert bench.first.fences[-1].set_aside == ()


def test_what_died_before_is_left_out(bench: Bench) -> None:
    """The journal has forgotten it, because every sink was past it; the facts have not."""
    record = RawRecord(topic=TOPIC, partition=0, offset=3, key=None, value=b"{")
    death = DeadCause(reason=DeadReason.MALFORMED, message="")
    bench.journal.buried = [DeadLetterRecord(record=record, cause=death)]
    old = replace(bench.first.fences[-1], sink="!dead", dead=())
    bench.journal.fences = [replace(old, batch=replace(old.batch, sequence=1))]
    bench.rewind = to(2)
    bench.started()
    (dead,) = bench.journal.fences[-1].dead
    assert (dead.offsets, dead.sink) == ((3,), None)
    assert bench.journal.fences[-1].batch.sequence == 1
    assert len(bench.journal.buried) == 1


@pytest.mark.parametrize(
    ("start", "position"),
    [(0, 1), (1, 1), (8, 8), (20, 20), (25, 20)],
    ids=["before the base", "base", "between", "frontier", "beyond"],
)
def test_a_position_is_between_the_base_and_the_frontier(start: int, position: int) -> None:
    found = rewound_position({PLACE: start}, bases={PLACE: 1}, frontier={PLACE: 20})
    assert found == {PLACE: position}


def test_a_later_begin_sets_aside_what_is_not_read(bench: Bench) -> None:
    bench.rewind = to(10)
    assert bench.started() == {PLACE: 10}
    skipped = (SetAside(reason="skipped_by_operator", ranges=(run_of(7, 10),)),)
    assert [where(sink.fences[-1]) for sink in (bench.first, bench.second)] == [(1, 10, 10)] * 2
    assert {commit.set_aside for commit in bench.commits[-2:]} == {skipped}
    bench.plan(0, 12, start=10)
    bench.stage().process(NO_FRAME, 0)
    assert bench.first.ranges[-1] == (10, 12)


def test_what_was_skipped_does_not_come_again(bench: Bench) -> None:
    bench.rewind = to(10)
    bench.started()
    bench.plan(0, 12, start=10)
    bench.stage().process(NO_FRAME, 0)
    bench.rewind = to(5, number=2)
    assert bench.started() == {PLACE: 5}
    bench.plan(0, 14, start=5)
    bench.stage().process(NO_FRAME, 0)
    assert bench.first.ranges == [(0, 4), (4, 7), (10, 12), (5, 7), (10, 12), (12, 14)]
    assert where(bench.first.fences[-1]) == (2, 14, 14)


def test_once_writes_nothing_that_was_skipped(bench: Bench) -> None:
    bench.replaces = True  # its batches stay whole
    test_what_was_skipped_does_not_come_again(bench)


def test_a_forward_rewind_never_goes_back(bench: Bench) -> None:
    """The driver of before has read on, after the ends were asked for."""
    bench.rewind = to(5, forward=True)
    assert bench.started() == {}
    assert where(bench.first.fences[-1]) == (1, 7, 7)


@pytest.mark.parametrize("goes_back", [True, False])
def test_a_sink_that_each_batch_replaces_gets_no_older_rows(bench: Bench, goes_back: bool) -> None:
    """Its mode was changed after somebody asked for the rewind."""
    bench.rewind = to(2, forward=not goes_back)
    bench.replacing = {"second": Replacing.BY_BATCH}
    if not goes_back:
        assert bench.started() == {}
        return
    with pytest.raises(StageStopped, match=r"replaces_rows: .*sink second"):
        bench.started()
    bench.replacing = {}
    assert bench.started() == {PLACE: 2}


@pytest.mark.parametrize("second", [to(6, number=2), to(7, number=2, forward=True)])
@pytest.mark.parametrize("upserts", [False, True])
def test_a_later_rewind_ends_one_before_only_where_no_older_rows_stay(
    bench: Bench, second: Rewind, upserts: bool
) -> None:
    """By key, the sink shows the rows of [2, 3) now, and newer ones of their keys may follow."""
    bench.replacing = {"first": Replacing.BY_KEY, "second": Replacing.BY_KEY} if upserts else {}
    bench.rewind = to(2)
    bench.started()
    bench.plan(0, 3, start=2)
    bench.stage().process(NO_FRAME, 0)
    bench.rewind = second
    bench.started()
    fence = bench.first.fences[-1]
    begins = 3 if upserts else min(second.starts[PLACE], fence.frontier[PLACE])
    assert (fence.rewind, fence.position[PLACE]) == (2, begins)


def test_a_sink_that_feeds_readers_ends_no_rewind_before_the_next() -> None:
    """What reads the topic may replace rows by their keys, and would keep the older ones."""
    enrich, load = read_manifest(EXAMPLE).model.stages
    assert replacing_of(enrich) == {"enriched_topic": Replacing.BY_KEY}
    assert replacing_of(load) == {}, "its table only gets more rows"


@pytest.mark.parametrize("rewound", [False, True])
def test_the_loss_of_a_sinks_topic_is_seen_also_at_a_rewind(bench: Bench, rewound: bool) -> None:
    bench.generation, bench.first.moved = 2, 2
    bench.rewind = to(2) if rewound else None
    bench.started()
    reasons = {(each.sink, aside.reason) for each in bench.commits for aside in each.set_aside}
    assert ("first", "sink_topic_recreated") in reasons


def test_each_sink_does_all_rewinds_that_it_has_not_done() -> None:
    other = ("T1", 1)
    rewinds = [to(4), Rewind(number=2, starts={other: 6}), to(3, 3, forward=True)]
    assert joint_starts(rewinds, {PLACE: 5}) == {PLACE: 5, other: 6}
    assert joint_starts(rewinds[:2], {PLACE: 5}) == {PLACE: 4, other: 6}


def test_a_sink_gets_what_only_another_one_has_skipped(bench: Bench) -> None:
    """The second sink was further when its stage began later."""
    bench.sinks = ("second",)
    bench.run(2, 9)
    bench.sinks = ("first", "second")
    bench.rewind = to(10)
    bench.started()
    bench.rewind = to(6, number=2)
    bench.started()
    bench.plan(0, 12, start=6)
    bench.stage().process(NO_FRAME, 0)
    assert bench.first.ranges[-2:] == [(6, 7), (10, 12)]
    assert bench.second.ranges[-3:] == [(6, 7), (7, 9), (10, 12)]


def test_neither_a_deleted_topic_nor_an_unknown_partition_is_rewound() -> None:
    starts = {PLACE: 1, ("T1", 9): 1}
    assert rewound_position(starts, bases={}, frontier={PLACE: ENDLESS}) == {}


def test_ranges_are_cut_at_each_bound() -> None:
    topic_id = make_range().topic_id
    ranges = (make_range(0, 9), make_range(4, 6, partition=1))
    bounds = [{(topic_id, 0): 5, (topic_id, 1): 4}, {(topic_id, 0): 3}, {}]
    parts = in_parts(ranges, bounds)
    assert [run for part in parts for run in part if run.partition == 0] == [
        make_range(0, 3), make_range(3, 5), make_range(5, 9)
    ]  # fmt: skip
    assert [run for part in parts for run in part if run.partition] == [ranges[1]]
    assert in_parts(ranges, []) == (ranges,)
