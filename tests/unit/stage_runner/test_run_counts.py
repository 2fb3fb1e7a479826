"""Events say what the driver of a run has done, also after it has ended."""

from builders import make_record
from unit.stage_runner.decisions import Decisions
from waybill_shared.contract.driver_news import StageActivity
from waybill_shared.contract.lifecycle_events import RunCounts
from waybill_stage_runner.core.pipelines.events import DriverEnded, DriverProgress, RecordRequested
from waybill_stage_runner.core.pipelines.states import MessageOrigin


def done(pipeline: Decisions) -> RunCounts | None:
    origin = MessageOrigin(at=pipeline.now, now=pipeline.now)
    return pipeline.state.event("transition", None, origin).done


def test_events_say_what_the_run_has_done_until_the_next_one_reports() -> None:
    record = make_record()
    pipeline = Decisions(record, RecordRequested(record=record, command=None, written=True))
    assert done(pipeline) is None
    load = StageActivity(stage="load", batches=3, rows=30)
    pipeline.on(DriverProgress(stages=(load, StageActivity(stage="copy", batches=1, rows=5))))
    first = RunCounts(run=1, batches=4, rows=35)
    assert done(pipeline) == first
    pipeline.on(DriverEnded(exit_code=-9))
    assert done(pipeline) == first
    pipeline.after(10_000)
    assert (pipeline.state.record.run, done(pipeline)) == (2, first)
    pipeline.on(DriverProgress(stages=(StageActivity(stage="load", batches=1, rows=2),)))
    assert done(pipeline) == RunCounts(run=2, batches=1, rows=2)
