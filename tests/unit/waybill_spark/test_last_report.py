"""What is said at last of a sink that goes, if what it wrote to is gone before."""

from typing import Never

from unit.waybill_spark.bench import TOPIC, Bench, ListSink
from waybill_shared.contract.events import Range
from waybill_shared.contract.words import LossReason
from waybill_spark.driver.closing import _report
from waybill_spark.tracking.ledger import Ledger
from waybill_spark.tracking.stopping import StageStopped

GONE = StageStopped(LossReason.TOPIC_DELETED, "topic t is gone", "restart the pipeline")


def closing(bench: Bench, sink: ListSink) -> Ledger:
    bench.first = sink
    (ledger, _) = bench.stage()._ledgers
    return ledger


def test_what_a_sink_took_is_told_also_when_its_topic_is_gone(bench: Bench) -> None:
    """Nobody sees it there any more; but who has read it there may have it."""
    bench.run(0, 4)
    bench.first.gone = GONE
    before = bench.first.fences[-1]

    _report(closing(bench, bench.first))

    (commit,) = bench.commits
    (aside,) = commit.set_aside
    taken = Range(topic=TOPIC, topic_id="T1", partition=0, start=0, end=4)
    assert (aside.reason, aside.ranges) == ("sink_topic_recreated", (taken,))
    assert commit.frontier == before.frontier
    assert bench.first.fences[-1].generation == before.generation


def test_of_a_table_that_was_never_made_there_is_nothing_to_tell(bench: Bench) -> None:
    class NoTable(ListSink):
        def write(self, *args: object) -> Never:
            raise GONE

    _report(closing(bench, NoTable("first")))

    assert not bench.commits
