"""A stage that is rewound: its next batch begins earlier, and its frontier stays where it is."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import make_range
from strategies import patiently
from unit.waybill_spark.bench import NO_FRAME, TOPIC, Bench, ListSink, run_of
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.events import Fence, SetAside
from waybill_shared.contract.vectors import ENDLESS
from waybill_shared.contract.words import DeadReason
from waybill_spark.tracking.dead_letters.records import DeadCause, DeadLetterRecord, RawRecord
from waybill_spark.tracking.fencing import LaterSink
from waybill_spark.tracking.pieces import in_parts
from waybill_spark.tracking.rewinding import Rewind, rewound_position

PLACE = ("T1", 0)


def to(start: int, number: int = 1) -> Rewind:
    return Rewind(number=number, starts={PLACE: start})


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


@dataclass
class History:
    """A stage over any batches, crashes and rewinds. Each step is a new driver."""

    bench: Bench
    wanted: int = 0
    end: int = 0
    batch: int = 0
    sinks: tuple[ListSink, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.sinks = (self.bench.first, self.bench.second)
        for sink in self.sinks:
            sink.failing = set()

    def rewind(self, start: int) -> None:
        self.wanted = min(start, self.end)
        number = 1 if self.bench.rewind is None else self.bench.rewind.number + 1
        self.bench.rewind = to(self.wanted, number)

    def step(self, size: int, fails: int | None) -> None:
        """Start, and do a batch; one sink may be away for one of its writes."""
        if fails is not None:
            sink = self.sinks[fails % 2]
            sink.failing.add(len(sink.fences) + fails // 2)
        try:
            self._batch(size)
        except Retryable:
            self._check()
        for sink in self.sinks:
            sink.failing.clear()

    def _batch(self, size: int) -> None:
        stage = self.bench.stage()
        stage.report_losses()
        starts = stage.resume()
        if starts:
            self.batch = 0
        planned = (self.bench.folder / "offsets" / str(self.batch)).exists()
        if not planned:
            at = self.bench.first.fences[-1].position[PLACE] if self.bench.first.fences else 0
            self.end = max(self.end, at + size)
            self.bench.plan(self.batch, at + size, start=starts.get(PLACE, 0))
        stage.process(NO_FRAME, self.batch)
        (self.bench.folder / "commits").mkdir(exist_ok=True)
        (self.bench.folder / "commits" / str(self.batch)).write_text("v1\n{}")
        self.batch += 1
        self._check()

    def _check(self) -> None:
        for sink in self.sinks:
            at = frontier = number = 0
            for fence in sink.fences:
                assert fence.frontier[PLACE] >= frontier, "a frontier goes back"
                assert fence.rewind >= number, "an older rewind is done again"
                if fence.rewind > number:
                    assert not fence.inputs
                    at = fence.position[PLACE]
                for run in fence.inputs:
                    assert run.start == at, "a batch does not begin at the position"
                    assert not aside_in(fence).intersection(range(run.start, run.end))
                    at = run.end
                passed = range(at, fence.position[PLACE])
                assert aside_in(fence).issuperset(passed), "it passes what was not set aside"
                at = fence.position[PLACE]
                frontier, number = fence.frontier[PLACE], fence.rewind


steps = st.one_of(
    st.tuples(st.just("batch"), st.integers(1, 4), st.none() | st.integers(0, 5)),
    st.tuples(st.just("rewind"), st.integers(0, 20), st.none()),
)


@patiently
@given(st.lists(steps, max_size=12))
def test_every_wanted_record_is_written_once_in_the_newest_rewind(
    history: list[tuple[str, int, int | None]],
) -> None:
    with TemporaryDirectory() as folder:
        stage = History(Bench(Path(folder) / "checkpoint"))
        for what, number, fails in history:
            if what == "rewind":
                stage.rewind(number)
            else:
                stage.step(number, fails)
        stage.step(1, None)
        while any(sink.fences[-1].position[PLACE] < stage.end for sink in stage.sinks):
            stage.step(3, None)
        newest = 0 if stage.bench.rewind is None else stage.bench.rewind.number
        for sink in stage.sinks:
            assert sink.fences[-1].rewind == newest
            runs = [run for f in sink.fences if f.rewind == newest for run in f.inputs]
            written = [offset for run in runs for offset in range(run.start, run.end)]
            wanted = set(range(stage.wanted, stage.end)) - aside_in(sink.fences[-1])
            assert written == sorted(wanted)
