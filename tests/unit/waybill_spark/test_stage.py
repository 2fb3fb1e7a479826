"""A tracked stage with sinks of plain Python: what is written, what is reported, what stops it."""

import pytest

from unit.waybill_spark.bench import NO_FRAME, TOPIC, Bench
from waybill_shared.contract.errors import Retryable
from waybill_spark.tracking.batch_progress import BatchProgress
from waybill_spark.tracking.stopping import StageClosed, StageStopped


def test_each_sink_is_reported_as_soon_as_it_has_committed(bench: Bench) -> None:
    stage = bench.stage()
    bench.plan(0, 4)

    stage.process(NO_FRAME, 0)

    assert bench.first.ranges == bench.second.ranges == [(0, 4)]
    assert [commit.sink for commit in bench.commits] == ["first", "second"]
    assert [*bench.commits[0].frontier.values()] == [4]
    assert bench.commits[0].batch.sequence == 0
    assert bench.reads == 1


def test_a_batch_that_fails_between_two_sinks_is_finished_when_it_comes_again(bench: Bench) -> None:
    bench.second.failing = {0}
    bench.plan(0, 4)
    with pytest.raises(Retryable):
        bench.stage().process(NO_FRAME, 0)
    assert [commit.sink for commit in bench.commits] == ["first"]

    bench.stage().process(NO_FRAME, 0)

    assert bench.first.ranges == bench.second.ranges == [(0, 4)]
    assert bench.commits[-1].sink == "second"


def test_what_stands_in_the_sinks_is_reported_again_at_every_start(bench: Bench) -> None:
    bench.plan(0, 4)
    bench.stage().process(NO_FRAME, 0)
    before = list(bench.commits)

    bench.stage().report_losses()

    assert [(c.batch.sequence, c.frontier, c.sink) for c in bench.commits] == [
        (c.batch.sequence, c.frontier, c.sink) for c in before
    ]


def test_a_batch_that_is_done_is_not_even_read_again(bench: Bench) -> None:
    bench.plan(0, 4)
    bench.stage().process(NO_FRAME, 0)

    bench.stage().process(NO_FRAME, 0)

    assert bench.reads == 1
    assert bench.first.ranges == [(0, 4)]


def test_a_query_with_state_runs_a_batch_again_that_its_sinks_have(bench: Bench) -> None:
    bench.has_state = True
    bench.plan(0, end=3)
    bench.stage().process(NO_FRAME, 0)
    bench.stage().process(NO_FRAME, 0)
    assert bench.reads == 2
    assert bench.first.ranges == bench.second.ranges == [(0, 3)]
    assert [commit.sink for commit in bench.commits] == ["first", "second"]


def test_nothing_is_written_when_the_topic_is_another_one_now(bench: Bench) -> None:
    stage = bench.stage()
    bench.plan(0, 4)
    bench.topic_id = "T2"

    with pytest.raises(StageStopped, match="topic_recreated"):
        stage.process(NO_FRAME, 0)

    assert bench.first.rows == 0
    assert bench.commits[-1].set_aside[0].reason == "topic_recreated"


def test_nothing_is_written_while_brokers_tell_different_ids(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was read may be of the new topic, though the second broker has not heard of it yet."""
    stage = bench.stage()
    bench.plan(0, 4)
    answers = iter([{TOPIC: "T2"}, {TOPIC: "T1"}])
    monkeypatch.setattr(bench, "ids", lambda wanted: next(answers))

    with pytest.raises(Retryable, match="brokers do not agree"):
        stage.process(NO_FRAME, 0)

    assert bench.first.rows == 0


def test_a_longer_range_under_the_same_batch_id_is_no_repetition(bench: Bench) -> None:
    """Spark lost the batch's files and planned it anew: skipping it by its id would lose rows."""
    bench.plan(0, 4)
    bench.stage().process(NO_FRAME, 0)
    bench.plan(0, 9)

    with pytest.raises(StageStopped, match="checkpoint_diverged") as stopped:
        bench.stage().process(NO_FRAME, 0)

    assert stopped.value.retryable
    assert bench.first.ranges == [(0, 4)]


def test_what_nobody_can_see_is_reported_as_soon_as_it_can_be_seen(bench: Bench) -> None:
    stage = bench.stage()
    bench.plan(0, 4)
    bench.first.hidden = True

    stage.process(NO_FRAME, 0)

    assert [commit.sink for commit in bench.commits] == ["second"]
    assert stage.has_hidden_rows()
    bench.first.hidden = False
    stage.watch()
    assert [commit.sink for commit in bench.commits] == ["second", "first"]
    assert not stage.has_hidden_rows()


def test_a_batch_without_offsets_changes_nothing(bench: Bench) -> None:
    stage = bench.stage()
    bench.plan(0, 0)

    stage.process(NO_FRAME, 0)

    assert bench.first.fences == []
    assert bench.commits == []


def test_no_batch_begins_after_close(bench: Bench) -> None:
    stage = bench.stage()
    bench.plan(0, 4)
    stage.close()

    with pytest.raises(StageClosed):
        stage.process(NO_FRAME, 0)

    assert bench.first.fences == []


def test_a_batch_makes_progress_with_its_rows_and_with_each_sink(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted: list[int] = []

    def note(progress: BatchProgress, rows: int = 0) -> None:
        assert progress.report("load").batch_ms is not None
        noted.append(len(bench.first.fences) + len(bench.second.fences))

    monkeypatch.setattr(BatchProgress, "note", note)
    stage = bench.stage()
    bench.plan(0, 4)
    stage.process(NO_FRAME, 0)
    assert noted == [0, 0, 1, 2]
    assert stage.progress.report("load").batch_ms is None


def test_a_run_counts_its_batches_and_the_rows_of_each_sink(bench: Bench) -> None:
    stage = bench.stage()
    bench.plan(0, 4)
    for _ in range(2):  # the second time no sink lacks it
        stage.process(NO_FRAME, 0)
    counts = stage.progress.report("load")
    written = sum(sink.fences[-1].batch.rows for sink in (bench.first, bench.second))
    assert (counts.batches, counts.rows) == (2, written)
    assert written > 0
