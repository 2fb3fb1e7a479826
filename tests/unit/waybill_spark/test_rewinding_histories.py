"""A stage over any batches, crashes and rewinds: what each sink reads, and what it never does."""

from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from strategies import patiently
from unit.waybill_spark.bench import NO_FRAME, Bench, ListSink
from unit.waybill_spark.test_rewinding import PLACE, aside_in, to
from waybill_shared.contract.errors import Retryable


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
