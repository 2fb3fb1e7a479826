"""What is told of a driver that runs: what it waits for, leaves out and has maintained."""

from dataclasses import replace

import pytest

from builders import make_record
from unit.stage_runner.decisions import Decisions
from waybill_shared.contract.driver_news import IgnoredFields, SinkWait, TableMaintenance
from waybill_shared.contract.lifecycle import Phase
from waybill_shared.contract.lifecycle_events import LifecycleError
from waybill_shared.contract.words import Obstacle
from waybill_stage_runner.core.pipelines.actions import (
    ReportMaintenance,
    SendHeartbeat,
    StartDriver,
)
from waybill_stage_runner.core.pipelines.events import (
    DriverBlocked,
    DriverEnded,
    DriverFailed,
    DriverIgnores,
    DriverMaintained,
    DriverRuns,
    Event,
    RecordRequested,
)

RECORD = make_record()
STOPPED = replace(RECORD, desired="stopped")
USER_ERROR = LifecycleError(
    domain="user", message="the SQL is wrong", hint="mend it", stage="enrich", retryable=False
)
EXTERNAL_ERROR = replace(USER_ERROR, domain="external", message="kafka is away", retryable=True)
CRASH = DriverEnded(exit_code=137)
TRANSACTION = DriverBlocked(blocked_by=Obstacle.BLOCKED_BY_OPEN_TRANSACTION)


def test_what_a_driver_waits_for_is_told_at_once_and_once(running: Decisions) -> None:
    assert running.on(TRANSACTION) == (SendHeartbeat(),)
    assert running.state.blocked_by == "blocked_by_open_transaction"
    assert running.on(TRANSACTION) == ()
    assert running.on(DriverBlocked(blocked_by=None)) == (SendHeartbeat(),)
    assert running.state.blocked_by is None


def test_a_sink_that_is_away_is_waited_for_until_a_driver_has_opened_it(running: Decisions) -> None:
    error = replace(EXTERNAL_ERROR, stage="load", sink="lake", message="no answer\nfrom lake")
    running.on(DriverFailed(problems=(), error=error), CRASH)
    wait = SinkWait(stage="load", sink="lake", blocked_by="sink_retrying", message="no answer")
    assert list(running.state.waits) == [wait]
    running.after(500)
    assert running.state.phase is Phase.STARTING
    assert list(running.state.waits) == [wait]
    running.on(DriverRuns())
    assert list(running.state.waits) == []


def test_a_sink_that_is_told_not_to_be_away_is_not_waited_for(running: Decisions) -> None:
    error = replace(EXTERNAL_ERROR, domain="internal", stage="load", sink="lake")
    running.on(DriverFailed(problems=(), error=error), CRASH)
    assert list(running.state.waits) == []


def test_a_sink_is_not_tried_again_before_it_has_asked_for_it(running: Decisions) -> None:
    error = replace(EXTERNAL_ERROR, retry_after_ms=7_000)
    running.on(DriverFailed(problems=(), error=error), CRASH)
    assert running.after(6_999) == ()
    assert running.after(1)[-1] == StartDriver()


def test_a_slow_sink_is_told_while_it_is_slow(running: Decisions) -> None:
    wait = SinkWait(stage="load", sink="lake", blocked_by="batch_running")
    slow = DriverBlocked(blocked_by=None, waits=(wait,))
    assert running.on(slow) == (SendHeartbeat(),)
    assert running.on(slow) == ()
    assert list(running.state.waits) == [wait]
    assert running.on(DriverBlocked(blocked_by=None)) == (SendHeartbeat(),)
    assert list(running.state.waits) == []
    running.on(slow, CRASH)
    assert list(running.state.waits) == []


def test_what_a_driver_leaves_out_is_told_until_another_one_starts(running: Decisions) -> None:
    fields = (IgnoredFields(input="orders", records=3, warnings=("field 'a' is no column",)),)
    assert running.on(DriverIgnores(fields=fields)) == (), "the next beat is soon enough"
    running.on(CRASH)
    assert running.state.ignored == fields
    running.want(RECORD, "c2")
    assert running.state.phase is Phase.STARTING
    assert not running.state.ignored


def test_a_table_that_a_driver_has_kept_is_told_at_once(running: Decisions) -> None:
    maintenance = TableMaintenance(
        stage="load", sink="lake", task="compact", done={"files": 12, "into": 1}
    )
    assert running.on(DriverMaintained(maintenance=maintenance)) == (
        ReportMaintenance(maintenance=maintenance),
    )
    assert running.state.phase is Phase.RUNNING


def test_driver_may_be_blocked_before_it_runs(starting: Decisions) -> None:
    assert starting.on(TRANSACTION) == (SendHeartbeat(),)
    starting.on(DriverRuns())
    assert starting.state.blocked_by == "blocked_by_open_transaction"


@pytest.mark.parametrize("event", [CRASH, RecordRequested(record=STOPPED, command=None)])
def test_nothing_is_waited_for_when_the_driver_does_not_run(
    running: Decisions, event: Event
) -> None:
    running.on(TRANSACTION, event)
    assert running.state.blocked_by is None
    assert running.on(TRANSACTION) == ()
    assert running.state.blocked_by is None
