"""Which phase is shown while the record of a pipeline is newer than its slot."""

from dataclasses import replace

import pytest
from fastapi.testclient import TestClient

from unit.status.fakes import FakeOwners, FakeStore
from unit.status.slots import life, reading, record, slot
from waybill_shared.contract.commands import StopMode
from waybill_shared.contract.events import Desired, PipelineRecord
from waybill_shared.contract.lifecycle_events import LifecycleError
from waybill_shared.contract.words import Obstacle
from waybill_shared.topic_views.connectors import KnownConnectors
from waybill_status.core.pipelines.details import detail_of, summary_of

RUN = life().run
FAULT = LifecycleError(domain="user", message="no", hint="mend", stage=None, retryable=False)


def wanted(
    desired: Desired = "running", *, run: int = RUN, finished: bool = False
) -> PipelineRecord:
    return replace(record(), desired=desired, run=run, finished=finished)


@pytest.mark.parametrize(
    ("said", "newer", "phase"),
    [
        ("Paused", wanted("paused"), "Paused"),
        ("Paused", wanted("running"), "Starting"),
        ("Paused", wanted("stopped"), "CheckpointStopping"),
        ("Paused", replace(wanted("stopped"), stop_mode=StopMode.FORCE), "Stopping"),
        ("Paused", wanted("paused", run=RUN + 1), "Starting"),
        ("Finished", wanted(finished=True), "Finished"),
        ("Finished", wanted(), "Starting"),
        ("Finished", wanted("paused"), "Starting"),
        ("Finished", wanted(finished=True, run=RUN + 1), "Starting"),
        ("Finished", wanted("stopped"), "Finished"),
        ("Failed", wanted(), "Failed"),
        ("Failed", wanted(run=RUN + 1), "Starting"),
        ("Stopped", wanted("stopped"), "Stopped"),
        ("Stopped", wanted("stopped", run=RUN + 1), "Starting"),
        ("Stopped", wanted(), "Starting"),
        ("Stopped", wanted("paused"), "Starting"),
        ("Running", wanted("paused"), "Running"),
        ("Running", wanted(run=RUN - 1), "Running"),
        ("Starting", wanted(), "Starting"),
    ],
)
def test_a_phase_that_the_record_has_ended_is_not_shown(
    said: str, newer: PipelineRecord, phase: str
) -> None:
    known = reading(slot(lifecycle=life(said)))
    assert summary_of(newer, known).phase == phase
    assert detail_of(newer, known, KnownConnectors()).phase == phase


def test_nothing_of_the_former_run_is_shown_with_the_phase_of_the_next() -> None:
    failed = replace(life("Failed", at=7), error=FAULT, attempt=5, next_at=9, escalates_at=9)
    content = replace(slot(lifecycle=failed), blocked_by=Obstacle.BLOCKED_BY_OPEN_TRANSACTION)
    shown = detail_of(wanted(run=RUN + 1), reading(content), KnownConnectors())
    assert (shown.phase, shown.reason) == (
        "Starting",
        "what comes after Failed is not reported yet",
    )
    assert (shown.error, shown.attempt, shown.next_attempt_at) == (None, 0, None)
    assert (shown.escalates_at, shown.blocked_by, shown.stuck) == (None, None, None)
    assert shown.since == 7
    assert detail_of(wanted(), reading(content), KnownConnectors()).error is not None


def test_a_run_after_a_failure_is_still_that_attempt() -> None:
    waiting = replace(life("Recovering"), attempt=2, error=FAULT)
    shown = detail_of(wanted(run=RUN + 1), reading(slot(lifecycle=waiting)), KnownConnectors())
    assert (shown.phase, shown.attempt) == ("Starting", 2)


def test_the_list_and_one_pipeline_show_the_same_phase(
    client: TestClient, store: FakeStore, owners: FakeOwners
) -> None:
    store.put(slot(lifecycle=life("Paused")), version=1)
    owners.directory.accept(wanted("running"))
    (listed,) = client.get("/v1/pipelines").json()["items"]
    assert listed["phase"] == client.get("/v1/pipelines/orders").json()["phase"] == "Starting"
