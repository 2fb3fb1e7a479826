"""What the runner shows of its pipelines."""

from dataclasses import replace

from builders import NOW, make_record
from scraping import Scrape, read_scrape
from waybill_shared.contract.lifecycle import Phase
from waybill_shared.contract.lifecycle_events import LifecycleError
from waybill_shared.contract.run_words import DegradedCause
from waybill_shared.contract.words import Obstacle
from waybill_shared.process import metrics
from waybill_stage_runner.app.measuring import measure, show
from waybill_stage_runner.core.pipelines.states import Degraded, PipelineState

STARTING = PipelineState(record=make_record(), phase=Phase.STARTING, since=NOW)
CRASH = LifecycleError(
    domain="internal", message="exit code 137", hint="", stage=None, retryable=True
)


def shown() -> Scrape:
    return read_scrape(metrics.text_of("stage_runner", {}).decode())


def test_a_pipeline_is_shown_under_its_phase_alone() -> None:
    show([STARTING])
    show([replace(STARTING, phase=Phase.RUNNING, blocked_by=Obstacle.BLOCKED_BY_OPEN_TRANSACTION)])

    labels = {"pipeline": "orders", "phase": "Running", "fault": ""}
    assert shown().labels("waybill_pipeline_phase") == [labels]
    assert shown().names(blocked_by="blocked_by_open_transaction")


def test_what_a_pipeline_is_degraded_for_is_shown_while_it_is() -> None:
    hangs = Degraded(stage="load", cause=DegradedCause.NO_PROGRESS, since=NOW)
    show([replace(STARTING, phase=Phase.RUNNING, degraded=(hangs,))])
    labels = {"pipeline": "orders", "cause": "no_progress"}
    assert shown().labels("waybill_pipeline_degraded") == [labels]
    show([STARTING])
    assert shown().labels("waybill_pipeline_degraded") == []


def test_a_failed_pipeline_is_shown_with_whose_fault_it_is() -> None:
    wrong = replace(CRASH, domain="user", retryable=False)
    show([replace(STARTING, phase=Phase.FAILED, error=wrong)])
    labels = {"pipeline": "orders", "phase": "Failed", "fault": "user"}
    assert shown().labels("waybill_pipeline_phase") == [labels]


def test_the_time_of_a_start_is_from_its_phase_to_running() -> None:
    before = shown().value("waybill_driver_start_seconds_sum") or 0

    measure(STARTING, replace(STARTING, phase=Phase.RUNNING, since=NOW + 6_500))

    assert shown().value("waybill_driver_start_seconds_sum") == before + 6.5


def test_a_failure_is_counted_once_by_whose_it_is() -> None:
    metrics.forget("orders")
    recovering = replace(STARTING, phase=Phase.RECOVERING, error=CRASH)

    measure(STARTING, recovering)
    measure(recovering, replace(recovering, attempt=2))

    failures = shown().value("waybill_driver_failures_total", pipeline="orders", domain="internal")
    assert failures == 1


def test_failures_are_counted_under_the_present_name_alone() -> None:
    failed = replace(STARTING, phase=Phase.FAILED, error=CRASH)
    measure(STARTING, failed)
    assert shown().labels("waybill_driver_failures_total")
    sales = replace(failed.record, name="sales", was=("orders",))
    measure(failed, replace(failed, record=sales))
    assert shown().labels("waybill_driver_failures_total") == []
