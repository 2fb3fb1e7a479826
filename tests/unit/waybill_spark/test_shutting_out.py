"""An earlier driver that was only paused must write nothing once its successor has read fences."""

from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from shared.errors import Retryable
from shared.events import Commit
from unit.waybill_spark.bench import NO_FRAME, TOPIC, Bench, ListSink
from waybill.spark.commits import Identity
from waybill.spark.fencing import StageInput
from waybill.spark.ledger import Ledger
from waybill.spark.sinks import Written
from waybill.spark.stopping import StageStopped


@dataclass
class ListeningSink(ListSink):
    calls: list[str] = field(default_factory=list)

    def claim(self) -> None:
        self.calls.append("claim")

    def last(self) -> Written | None:
        self.calls.append("read")
        return super().last()


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_every_sink_is_claimed_before_any_fence_is_read(bench: Bench) -> None:
    """Else the earlier driver could still write into the second, by what the first held then."""
    calls: list[str] = []
    bench.first = ListeningSink("first", calls=calls)
    bench.second = ListeningSink("second", calls=calls)

    bench.stage()

    assert calls == ["claim", "claim", "read", "read"]


def test_closing_moves_the_fence_also_where_nothing_was_written(bench: Bench) -> None:
    """A table lets a driver commit whose fence stands where it has seen it, if only at none."""
    told: list[Commit] = []
    ledger = Ledger(
        bench.first,
        stage="load",
        inputs=(),
        identity=Identity(tenant="t", pipeline_uid="u", generation=1, epoch=2),
        emit=told.append,
        clock=bench,
    )

    for closings in (1, 2):
        ledger.read()
        ledger.shut()
        assert [fence.sequence for fence in bench.first.fences] == [*range(closings)]
        assert len(told) == closings
    assert bench.first.rows == 0


def test_a_sink_that_was_only_closed_makes_no_fence_of_another_missing(bench: Bench) -> None:
    """It was to be removed, and the change was overtaken by one that keeps it."""
    for _ in (1, 2):
        ledger = Ledger(
            bench.second,
            stage="load",
            inputs=(StageInput(name="orders", topic=TOPIC, topic_id="T1", bases={0: 0}),),
            identity=Identity(tenant="t", pipeline_uid="u", generation=1, epoch=2),
            emit=bench.commits.append,
            clock=bench,
        )
        ledger.read()
        ledger.shut()

    bench.stage()

    assert not bench.first.fences


def test_what_one_sink_alone_sets_aside_makes_no_fence_of_another_missing(bench: Bench) -> None:
    """Killed before the second had its first: it is to be levelled, not to be refused for ever."""
    bench.plan(0, 3)
    bench.second.failing = {0}
    with pytest.raises(Retryable):
        bench.stage().process(NO_FRAME, 0)
    (taken,) = bench.first.fences
    bench.first.fences.append(replace(taken, sequence=1, inputs=()))

    bench.stage()  # no checkpoint_diverged

    bench.first.fences.append(replace(taken, sequence=2, batches=2))
    with pytest.raises(StageStopped, match="checkpoint_diverged"):
        bench.stage()
