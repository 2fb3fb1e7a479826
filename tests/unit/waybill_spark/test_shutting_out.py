"""An earlier driver that was only paused must write nothing once its successor has read fences."""

from dataclasses import dataclass, field, replace

import pytest

from builders import with_batch
from unit.waybill_spark.bench import NO_FRAME, TOPIC, Bench, ListSink
from waybill_shared.contract.errors import Retryable
from waybill_spark.tracking.fencing import StageInput
from waybill_spark.tracking.ledger import Ledger
from waybill_spark.tracking.sink import SinkSuperseded, Written
from waybill_spark.tracking.stopping import StageStopped


@dataclass
class ListeningSink(ListSink):
    calls: list[str] = field(default_factory=list)

    def claim(self) -> None:
        self.calls.append("claim")

    def last(self) -> Written | None:
        self.calls.append("read")
        return super().last()


def test_every_sink_is_claimed_before_any_fence_is_read(bench: Bench) -> None:
    """Else the earlier driver could still write into the second, by what the first held then."""
    calls: list[str] = []
    bench.first = ListeningSink("first", calls=calls)
    bench.second = ListeningSink("second", calls=calls)

    bench.stage()

    assert calls == ["claim", "claim", "read", "read"]


def test_closing_moves_the_fence_also_where_nothing_was_written(bench: Bench) -> None:
    """A table lets a driver commit whose fence stands where it has seen it, if only at none."""
    for closings in (1, 2):
        close(bench, bench.first)
        assert [fence.batch.sequence for fence in bench.first.fences] == [*range(closings)]
        assert len(bench.commits) == closings
    assert bench.first.rows == 0


def test_a_driver_that_begins_late_writes_nothing_where_a_later_one_has_closed(
    bench: Bench,
) -> None:
    """It was claimed by a runner that was cut off before it started it."""
    late = bench.claim()
    close(bench, bench.second)

    with pytest.raises(SinkSuperseded, match="a later claim"):
        bench.stage(identity=late)

    bench.stage()  # of a later one, where the sink stays after all


def test_claims_in_a_lifecycle_topic_that_was_created_anew_are_not_late(bench: Bench) -> None:
    """Its offsets begin again."""
    bench.claims = 500
    bench.run(0, end=3)
    bench.claims, bench.lifecycle_id = 0, "L2"

    bench.run(1, end=6)

    assert bench.first.ranges == [(0, 3), (3, 6)]


def test_a_sink_that_was_only_closed_makes_no_fence_of_another_missing(bench: Bench) -> None:
    """It was to be removed, and the change was overtaken by one that keeps it."""
    for _ in (1, 2):
        close(bench, bench.second)

    bench.stage()

    assert not bench.first.fences


def test_what_one_sink_alone_sets_aside_makes_no_fence_of_another_missing(bench: Bench) -> None:
    """Killed before the second had its first: it is to be levelled, not to be refused for ever."""
    bench.plan(0, 3)
    bench.second.failing = {0}
    with pytest.raises(Retryable):
        bench.stage().process(NO_FRAME, 0)
    (taken,) = bench.first.fences
    bench.first.fences.append(with_batch(replace(taken, inputs=()), sequence=1))

    bench.stage()  # no checkpoint_diverged

    bench.first.fences.append(with_batch(replace(taken, batches=2), sequence=2))
    with pytest.raises(StageStopped, match="checkpoint_diverged"):
        bench.stage()


def test_when_claims_have_moved_no_driver_of_an_earlier_run_commits_its_batch(bench: Bench) -> None:
    bench.plan(0, 3)
    earlier = bench.stage()

    bench.stage().move_claims()

    with pytest.raises(SinkSuperseded):
        earlier.process(NO_FRAME, 0)
    assert (bench.first.rows, bench.second.rows) == (0, 0)
    bench.stage().process(NO_FRAME, 0)
    assert (bench.first.end, bench.first.rows) == (3, 2)


def test_claims_stay_where_this_driver_has_written_already(bench: Bench) -> None:
    bench.plan(0, 3)
    stage = bench.stage()
    stage.process(NO_FRAME, 0)

    stage.move_claims()
    stage.move_claims()

    assert len(bench.first.fences) == 1


def close(bench: Bench, sink: ListSink) -> None:
    """As the driver of a deletion, or of a change that removes the sink."""
    ledger = Ledger(
        sink,
        stage="load",
        inputs=(StageInput(name="orders", topic=TOPIC, topic_id="T1", bases={0: 0}),),
        identity=bench.claim(),
        emit=bench.commits.append,
        clock=bench,
    )
    ledger.read()
    ledger.close_for_good()
