"""How a stage begins: with its checkpoint, or where its fences stand; what sinks lack they get."""

from dataclasses import replace
from pathlib import Path

import pytest

from unit.waybill_spark.bench import NO_FRAME, Bench
from waybill_shared.contract.errors import Retryable
from waybill_spark.tracking.stopping import StageStopped


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """Batches [0, 4) and [4, 7) are in both sinks and in Spark's own log."""
    bench = Bench(tmp_path / "checkpoint")
    bench.run(0, 4)
    bench.run(1, 7)
    return bench


def asides(bench: Bench) -> list[str]:
    return sorted(place.name for place in bench.folder.parent.glob("*.aside-*"))


def lost(bench: Bench, *files: str) -> None:
    for file in files:
        (bench.folder / file).unlink()


def torn(bench: Bench) -> None:
    """A third batch, [7, 9), is only in the first sink."""
    bench.second.failing = {2}
    bench.plan(2, 9)
    with pytest.raises(Retryable):
        bench.stage().process(NO_FRAME, 2)


def test_the_first_start_begins_at_the_bases(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "checkpoint")
    assert bench.started() == {("T1", 0): 0}
    assert asides(bench) == []


def test_a_checkpoint_that_fits_the_sinks_goes_on(bench: Bench) -> None:
    assert bench.started() == {}
    bench.plan(2, 9)
    assert bench.started() == {}


def test_a_batch_that_only_some_sinks_have_is_left_to_spark_when_its_plan_is_there(
    bench: Bench,
) -> None:
    torn(bench)
    assert bench.started() == {}
    assert bench.read_again == []


@pytest.mark.parametrize(
    "files",
    [("offsets/1", "commits/1"), ("offsets/1",), ("offsets/0", "offsets/1", "commits/0")],
    ids=["the last batch", "the last plan", "everything but a commit"],
)
def test_a_checkpoint_without_its_last_files_is_moved_aside(
    bench: Bench, files: tuple[str, ...]
) -> None:
    lost(bench, *files)

    assert bench.started() == {("T1", 0): 7}

    assert asides(bench) == ["checkpoint.aside-1"]
    assert bench.first.ranges == [(0, 4), (4, 7)]


def test_a_missing_commit_alone_only_brings_its_batch_again(bench: Bench) -> None:
    lost(bench, "commits/1")
    assert bench.started() == {}
    bench.stage().process(NO_FRAME, 1)
    assert bench.first.ranges == [(0, 4), (4, 7)]


def test_a_batch_that_was_planned_backwards_is_no_plan(tmp_path: Path) -> None:
    """Spark plans so when a stage begins behind the stable end of its topic."""
    bench = Bench(tmp_path / "checkpoint")
    bench.plan(0, 3, start=5)
    assert bench.started() == {("T1", 0): 0}


def test_a_damaged_checkpoint_is_moved_aside(bench: Bench) -> None:
    (bench.folder / "offsets/1").write_text("")
    assert bench.started() == {("T1", 0): 7}
    assert asides(bench) == ["checkpoint.aside-1"]


def test_a_checkpoint_with_a_commit_of_another_driver_is_moved_aside(bench: Bench) -> None:
    """Paused before its commit, and gone on when its successor had begun a checkpoint anew."""
    (bench.folder / "commits/4").write_text("v1\n{}")
    assert bench.started() == {("T1", 0): 7}
    assert asides(bench) == ["checkpoint.aside-1"]
    assert bench.first.ranges == [(0, 4), (4, 7)]


def test_a_wiped_checkpoint_begins_where_the_sinks_stand(bench: Bench) -> None:
    bench.folder.rename(bench.folder.with_name("elsewhere"))
    assert bench.started() == {("T1", 0): 7}


def test_a_checkpoint_of_a_later_moment_gives_way_to_the_sinks(bench: Bench) -> None:
    """The sinks were restored from a copy: what they lack is written again."""
    for sink in (bench.first, bench.second):
        sink.fences.pop()
    assert bench.started() == {("T1", 0): 4}


def test_torn_sinks_are_levelled_by_exactly_what_one_of_them_lacks(bench: Bench) -> None:
    torn(bench)
    bench.folder.rename(bench.folder.with_name("elsewhere"))

    assert bench.started() == {("T1", 0): 9}

    ((run,),) = bench.read_again
    assert (run.start, run.end) == (7, 9)
    assert bench.first.ranges == bench.second.ranges == [(0, 4), (4, 7), (7, 9)]
    assert bench.second.fences[-1].batch.lineage == bench.first.fences[-1].batch.lineage
    assert bench.commits[-1].sink == "second"


def test_a_first_batch_that_is_torn_is_levelled_too(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "checkpoint")
    bench.second.failing = {0}
    bench.plan(0, 4)
    with pytest.raises(Retryable):
        bench.stage().process(NO_FRAME, 0)
    bench.folder.rename(tmp_path / "elsewhere")

    assert bench.started() == {("T1", 0): 4}

    assert bench.first.ranges == bench.second.ranges == [(0, 4)]


def test_nothing_is_levelled_from_a_topic_that_was_replaced_meanwhile(bench: Bench) -> None:
    torn(bench)
    bench.folder.rename(bench.folder.with_name("elsewhere"))
    stage = bench.stage()
    stage.report_losses()
    bench.topic_id = "T2"

    with pytest.raises(StageStopped, match="topic_recreated"):
        stage.resume()

    assert bench.second.rows == 4


@pytest.mark.parametrize("whose", ["one sink's", "every sink's"])
def test_a_fence_that_is_missing_stops_the_stage(bench: Bench, whose: str) -> None:
    """Was the table replaced, or only its fence deleted? Writing again might double every row."""
    bench.first.fences.clear()
    if whose == "every sink's":
        bench.second.fences.clear()

    with pytest.raises(StageStopped, match=r"checkpoint_diverged.*has no fence") as stopped:
        bench.stage()

    assert "apply it again" in stopped.value.hint


def test_where_the_checkpoint_is_damaged_nobody_says_that_a_stage_has_written(bench: Bench) -> None:
    bench.first.fences.clear()
    bench.second.fences.clear()
    for file in (bench.folder / "offsets").iterdir():
        file.write_text("v1")

    with pytest.raises(StageStopped, match=r"may have \(its checkpoint is damaged\) written"):
        bench.stage()


def test_sequence_and_frontier_grow_over_lineages(bench: Bench) -> None:
    bench.folder.rename(bench.folder.with_name("elsewhere"))
    bench.started()
    bench.plan(0, 12, start=7)

    bench.stage().process(NO_FRAME, 0)

    assert [fence.batch.sequence for fence in bench.first.fences] == [0, 1, 2]
    assert bench.first.end == 12


def test_another_partition_that_rests_stays_in_the_frontier(bench: Bench) -> None:
    frontier = bench.first.fences[-1].frontier
    (topic_id, _), *_ = frontier
    for sink in (bench.first, bench.second):
        sink.fences[-1] = replace(sink.fences[-1], frontier={**frontier, (topic_id, 1): 3})
    bench.plan(2, 9)
    bench.stage().process(NO_FRAME, 2)
    assert bench.first.fences[-1].frontier[topic_id, 1] == 3


def test_an_id_that_the_topic_had_before_is_a_broker_that_lags(bench: Bench) -> None:
    """What is set aside for it never comes back."""
    bench.topic_id, bench.retired = "T1", ("T1",)
    stage = bench.stage(reads="T2")
    fences = len(bench.first.fences)
    with pytest.raises(Retryable, match="an id that it had before"):
        stage.report_losses()
    assert len(bench.first.fences) == fences
