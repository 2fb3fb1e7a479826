"""Runs of a pipeline over HTTP."""

from dataclasses import replace

import pytest
from fastapi.testclient import TestClient

from unit.status.histories import LifeTopic
from unit.status.slots import life
from waybill_shared.contract.lifecycle_events import LifecycleError, RunCounts
from waybill_shared.contract.run_words import TO_BE

PLACE = "/v1/pipelines/orders/runs"
FAULT = LifecycleError(
    domain="external", message="no", hint="mend", stage="load", sink="lake", retryable=False
)
DONE = RunCounts(run=2, batches=7, rows=70)


def two_runs(topic: LifeTopic) -> None:
    first, second = replace(life(), run=1), replace(life(), run=2, parallelism=4)
    topic.write(
        replace(first, phase_from="Created", phase="Starting", actor="ada", at=1_000),
        replace(first, phase="Recovering", error=FAULT, attempt=1, at=2_000),
        replace(second, phase_from="Recovering", phase="Starting", attempt=1, at=3_000),
        replace(second, phase="Running", at=4_000),
        replace(second, phase="Stopping", reason=f"{TO_BE}stopped", actor="bob", at=5_000),
        replace(second, phase="Stopped", at=6_000, parallelism=2, done=DONE),
    )


def test_a_run_says_who_started_and_who_ended_it_and_why(
    client: TestClient, topic: LifeTopic
) -> None:
    two_runs(topic)
    answer = client.get(PLACE).json()
    assert (answer["next_cursor"], answer["gap"]) == (None, None)
    failed, stopped = answer["items"]
    assert (failed["started_by"], failed["end"], failed["ended_by"]) == (
        "ada",
        "failed",
        "stage_runner",
    )
    error = {"domain": "external", "message": "no", "hint": "mend", "stage": "load", "sink": "lake"}
    assert (failed["error"], stopped["error"]) == (error, None)
    assert stopped == {
        "id": "topic-1.1.2",
        "run": 2,
        "generation": 1,
        "began": "1970-01-01T00:00:03.000Z",
        "started_by": "stage_runner",
        "attempt": 1,
        "parallelism": 4,
        "phase": "Stopped",
        "ended": "1970-01-01T00:00:06.000Z",
        "end": "stopped",
        "reason": "to be stopped",
        "ended_by": "bob",
        "error": None,
        "batches": 7,
        "rows": 70,
    }
    assert (failed["batches"], failed["rows"]) == (None, None), "nobody has reported it"


def test_runs_come_in_pages(client: TestClient, topic: LifeTopic) -> None:
    two_runs(topic)
    newest = client.get(PLACE, params={"limit": 1}).json()
    older = client.get(PLACE, params={"limit": 1, "cursor": newest["next_cursor"]}).json()
    assert [each["items"][0]["run"] for each in (newest, older)] == [2, 1]
    assert older["next_cursor"] is None
    later = client.get(PLACE, params={"after": older["items"][0]["id"]}).json()
    assert later["items"] == newest["items"]


@pytest.mark.parametrize("asked", ["after=1", "cursor=before.t.1.1~x", "limit=0", "limit=1001"])
def test_what_is_no_page_of_runs_is_refused(
    client: TestClient, topic: LifeTopic, asked: str
) -> None:
    two_runs(topic)
    answer = client.get(f"{PLACE}?{asked}")
    assert (answer.status_code, answer.json()["type"]) == (422, "urn:waybill:problem:invalid")


def test_runs_of_no_pipeline_are_not_found_with_a_hint(client: TestClient) -> None:
    answer = client.get("/v1/pipelines/order/runs")
    assert answer.status_code == 404
    assert answer.json()["hint"].startswith("did you mean 'orders'?")


def test_without_the_newest_events_there_is_no_answer(client: TestClient) -> None:
    assert client.get(PLACE).status_code == 503
