"""A tracked stage with sinks of plain Python: what is written, what is reported, what stops it."""

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame

from shared.errors import Retryable
from shared.events import Commit, Fence
from waybill.spark.checkpoint import Checkpoint
from waybill.spark.commits import Identity
from waybill.spark.fencing import StageInput
from waybill.spark.sinks import Written
from waybill.spark.stage import StageClosed, StageStopped, TrackedStage

NO_FRAME = cast(DataFrame, None)  # only handed on to `to_rows`, which is a fake here
ROWS = pa.table({"n": [1, 2]})
TOPIC = StageInput(name="orders", topic="orders.in", topic_id="T1", bases={0: 0})


@dataclass
class ListSink:
    """Keeps what was written; fails once before the batch with a number in `failing`."""

    name: str
    kind: str = "list"
    fences: list[Fence] = field(default_factory=list)
    failing: set[int] = field(default_factory=set)
    hidden: bool = False

    def claim(self) -> None:
        pass

    def last(self) -> Written | None:
        return Written(fence=self.fences[-1], version={}) if self.fences else None

    def write(self, rows: pa.Table, fence: Fence) -> Written:
        if fence.sequence in self.failing:
            self.failing.remove(fence.sequence)
            raise Retryable("the sink is away")
        self.fences.append(fence)
        return Written(fence=fence, version={"v": len(self.fences)})

    def await_visible(self, fence: Fence) -> None:
        if self.hidden:
            raise Retryable("nobody can see it yet")

    def close(self) -> None:
        pass

    @property
    def ranges(self) -> list[tuple[int, int]]:
        return [(run.start, run.end) for fence in self.fences for run in fence.inputs]


@dataclass
class Bench:
    """A checkpoint in a folder, two sinks, and every stage that is started on them."""

    folder: Path
    first: ListSink = field(default_factory=lambda: ListSink("first"))
    second: ListSink = field(default_factory=lambda: ListSink("second"))
    commits: list[Commit] = field(default_factory=list)
    topic_id: str = "T1"
    reads: int = 0

    def stage(self) -> TrackedStage:
        """As after a start of the driver."""
        self.commits.clear()
        stage = TrackedStage(
            "load",
            identity=Identity(tenant="t", pipeline_uid="u", generation=1, epoch=1),
            inputs=(TOPIC,),
            sinks=(self.first, self.second),
            checkpoint=Checkpoint(self.folder),
            to_rows=self._rows,
            topic_ids=lambda topics: {"orders.in": self.topic_id},
            emit=self.commits.append,
            clock=self,
        )
        stage.open()
        return stage

    def plan(self, batch_id: int, end: int) -> None:
        """Spark has decided that the batch ends here."""
        for name in ("offsets", "sources/0"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        (self.folder / "metadata").write_text('{"id": "lineage-1"}')
        (self.folder / "sources/0/0").write_text('v1\n{"orders.in":{"0":0}}')
        ends = json.dumps({"orders.in": {"0": end}})
        (self.folder / "offsets" / str(batch_id)).write_text(f"v1\n{{}}\n{ends}")

    def now_ms(self) -> int:
        return 5

    def _rows(self, frame: DataFrame) -> dict[str, pa.Table]:
        self.reads += 1
        return {"first": ROWS, "second": ROWS}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_each_sink_is_reported_as_soon_as_it_has_committed(bench: Bench) -> None:
    stage = bench.stage()
    bench.plan(0, 4)

    stage.process(NO_FRAME, 0)

    assert bench.first.ranges == bench.second.ranges == [(0, 4)]
    assert [commit.sinks[0].name for commit in bench.commits] == ["first", "second"]
    assert bench.commits[0].frontier[0].offset == 4
    assert bench.commits[0].sequence == 0
    assert bench.reads == 1


def test_a_batch_that_fails_between_two_sinks_is_finished_when_it_comes_again(bench: Bench) -> None:
    bench.second.failing = {0}
    bench.plan(0, 4)
    with pytest.raises(Retryable):
        bench.stage().process(NO_FRAME, 0)
    assert [commit.sinks[0].name for commit in bench.commits] == ["first"]

    bench.stage().process(NO_FRAME, 0)

    assert bench.first.ranges == bench.second.ranges == [(0, 4)]
    assert bench.commits[-1].sinks[0].name == "second"


def test_what_stands_in_the_sinks_is_reported_again_at_every_start(bench: Bench) -> None:
    bench.plan(0, 4)
    bench.stage().process(NO_FRAME, 0)
    before = list(bench.commits)

    bench.stage()

    assert [(c.sequence, c.frontier, c.sinks[0].name) for c in bench.commits] == [
        (c.sequence, c.frontier, c.sinks[0].name) for c in before
    ]


def test_a_batch_that_is_done_is_not_even_read_again(bench: Bench) -> None:
    bench.plan(0, 4)
    bench.stage().process(NO_FRAME, 0)

    bench.stage().process(NO_FRAME, 0)

    assert bench.reads == 1
    assert bench.first.ranges == [(0, 4)]


def test_nothing_is_written_when_the_topic_is_another_one_now(bench: Bench) -> None:
    stage = bench.stage()
    bench.plan(0, 4)
    bench.topic_id = "T2"

    with pytest.raises(StageStopped, match="topic_recreated"):
        stage.process(NO_FRAME, 0)

    assert bench.first.fences == []
    assert bench.commits == []


def test_a_longer_range_under_the_same_batch_id_is_no_repetition(bench: Bench) -> None:
    """Spark lost the batch's files and planned it anew: skipping it by its id would lose rows."""
    bench.plan(0, 4)
    bench.stage().process(NO_FRAME, 0)
    bench.plan(0, 9)

    with pytest.raises(StageStopped, match="checkpoint_diverged"):
        bench.stage().process(NO_FRAME, 0)

    assert bench.first.ranges == [(0, 4)]


def test_what_nobody_can_see_is_not_reported(bench: Bench) -> None:
    stage = bench.stage()
    bench.plan(0, 4)
    bench.first.hidden = True

    with pytest.raises(Retryable):
        stage.process(NO_FRAME, 0)

    assert bench.commits == []


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


def test_a_new_checkpoint_begins_where_the_sinks_stand(bench: Bench) -> None:
    bench.plan(0, 4)
    bench.stage().process(NO_FRAME, 0)

    assert bench.stage().starting_offsets() == {("T1", 0): 4}
    bench.second.fences[-1] = replace(bench.second.fences[-1], frontier=())
    with pytest.raises(StageStopped, match="checkpoint_diverged"):
        bench.stage().starting_offsets()
