"""A batch that is too large for one read: every piece moves the fence by itself."""

from pathlib import Path

import pytest

from unit.waybill_spark.bench import NO_FRAME, Bench
from waybill_shared.contract.errors import Retryable


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """Four records of which two fit into a piece."""
    bench = Bench(tmp_path / "checkpoint", bytes_max=2)
    bench.plan(0, 4)
    return bench


def test_each_piece_is_written_into_every_sink_and_told(bench: Bench) -> None:
    bench.stage().process(NO_FRAME, 0)

    assert bench.first.ranges == bench.second.ranges == [(0, 2), (2, 4)]
    assert [[*commit.frontier.values()] for commit in bench.commits] == [[2], [2], [4], [4]]


def test_a_batch_that_fits_is_not_read_apart_from_its_query(bench: Bench) -> None:
    bench.bytes_max = 4
    bench.stage().process(NO_FRAME, 0)
    assert bench.first.ranges == [(0, 4)]
    assert bench.read_again == []


def test_a_record_larger_than_the_limit_passes_alone(bench: Bench) -> None:
    bench.sizes = {1: 50}
    bench.stage().process(NO_FRAME, 0)
    assert bench.first.ranges == [(0, 1), (1, 2), (2, 4)]


@pytest.mark.parametrize("sequence", [0, 1])
@pytest.mark.parametrize("sink", ["first", "second"])
def test_after_a_crash_between_two_pieces_every_record_is_taken_once(
    bench: Bench, sink: str, sequence: int
) -> None:
    getattr(bench, sink).failing = {sequence}
    with pytest.raises(Retryable):
        bench.stage().process(NO_FRAME, 0)

    starts = bench.started()

    if starts:  # the plan has no place for a fence that stands inside of it
        bench.plan(0, 4, start=starts["T1", 0])
    bench.stage().process(NO_FRAME, 0)
    for ranges in (bench.first.ranges, bench.second.ranges):
        assert [offset for run in ranges for offset in range(*run)] == [0, 1, 2, 3]


def test_a_sink_that_comes_back_is_levelled_in_steps(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "checkpoint", sinks=("first",))
    bench.run(0, 1)
    bench.sinks = ("first", "second")
    bench.second.fences.append(bench.first.fences[0])
    bench.sinks = ("first",)
    bench.run(1, 9)
    bench.sinks, bench.offsets_max, bench.bytes_max = ("first", "second"), 3, 2

    assert bench.started() == {("T1", 0): 9}

    assert bench.second.ranges == [(0, 1), (1, 3), (3, 4), (4, 6), (6, 7), (7, 9)]


def test_what_replaces_is_levelled_at_once(tmp_path: Path) -> None:
    """The second of two parts would erase the first."""
    bench = Bench(tmp_path / "checkpoint", replaces=True)
    bench.second.failing = {0}
    bench.plan(0, 8)
    with pytest.raises(Retryable):
        bench.stage().process(NO_FRAME, 0)
    bench.folder.rename(tmp_path / "elsewhere")
    bench.offsets_max, bench.bytes_max = 3, 2

    assert bench.started() == {("T1", 0): 8}

    assert bench.second.ranges == [(0, 8)]


@pytest.mark.parametrize(
    ("replaces", "markers", "untouched"), [(True, True, 1), (True, False, 0), (False, True, 0)]
)
def test_what_holds_no_record_replaces_nothing(
    tmp_path: Path, replaces: bool, markers: bool, untouched: int
) -> None:
    """A batch whose records give no rows does."""
    bench = Bench(tmp_path / "checkpoint", replaces=replaces, markers=markers)
    bench.run(0, 8)
    bench.empty = True
    bench.run(1, 9)
    assert (bench.first.untouched, bench.second.untouched) == (untouched, untouched)
    assert bench.first.ranges == bench.second.ranges == [(0, 8), (8, 9)]


def test_levelling_goes_on_where_a_crash_has_ended_it(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "checkpoint", offsets_max=3)
    bench.second.failing = {0}
    bench.plan(0, 8)
    with pytest.raises(Retryable):
        bench.stage().process(NO_FRAME, 0)
    bench.folder.rename(tmp_path / "elsewhere")
    bench.second.failing = {1}
    with pytest.raises(Retryable):
        bench.started()

    assert bench.started() == {("T1", 0): 8}

    assert bench.second.ranges == [(0, 3), (3, 6), (6, 8)]
