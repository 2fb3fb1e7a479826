from pathlib import Path

import pytest

from unit.waybill_spark.bench import Bench
from waybill_spark.tracking.fencing import LaterSink


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.fixture
def later_bench(tmp_path: Path) -> Bench:
    """The first sink holds everything below 7; no driver has begun the second yet, which came with
    generation 2."""
    bench = Bench(tmp_path / "checkpoint", sinks=("first",))
    bench.run(0, 4)
    bench.run(1, 7)
    bench.sinks, bench.generation = ("first", "second"), 2
    bench.later = {"second": LaterSink(since=2, bases={("T1", 0): 7})}
    return bench
