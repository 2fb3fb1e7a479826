"""Why a pipeline processes nothing, and what to do: one line each, the same wherever it is told."""

from dataclasses import replace
from typing import Any

import pytest
from fastapi.testclient import TestClient

from clocks import NOW
from unit.status.fakes import FakeStore
from unit.status.slots import life, slot
from waybill_shared.contract.driver_news import SinkWait
from waybill_shared.contract.lifecycle_events import Condition, LifecycleError
from waybill_shared.contract.run_words import DegradedCause
from waybill_shared.contract.words import Obstacle
from waybill_status.core.pipelines.conditions import HINTS, ConditionDetail
from waybill_status.core.pipelines.stuck import PipelineNow, stuck_of

NO_KAFKA = LifecycleError(
    domain="external", message="no kafka", hint="wait", stage=None, retryable=True
)
AWAY = SinkWait(stage="load", sink="lake", blocked_by=Obstacle.SINK_RETRYING, message="no answer")
HANGS = ConditionDetail(
    kind="degraded", stage="load", cause="no_progress", since=NOW, hint="look at its log"
)
SLOW = SinkWait(stage="load", sink="lake", blocked_by=Obstacle.BATCH_RUNNING)


@pytest.mark.parametrize(
    ("known", "cause"),
    [
        ({"phase": "Running"}, None),
        ({"phase": "Running", "error": NO_KAFKA}, None),
        ({"phase": "Running", "waits": (SLOW,)}, None),
        ({"phase": "Running", "waits": (SLOW, AWAY)}, "sink lake takes nothing now: no answer"),
        (
            {"phase": "Running", "blocked_by": Obstacle.BLOCKED_BY_OPEN_TRANSACTION},
            "a producer has an open transaction in a topic that it reads",
        ),
        (
            {"phase": "Running", "blocked_by": Obstacle.COMMITS_NOT_ACCEPTED},
            "Kafka does not accept what its driver reports of its sinks",
        ),
        ({"phase": "Running", "blocked_by": "of_tomorrow"}, "of_tomorrow"),
        (
            {"phase": "Running", "conditions": (HANGS,)},
            "stage load: a batch has done nothing for ten times its usual length",
        ),
        ({"phase": "Running", "conditions": (replace(HANGS, cause="odd"),)}, "stage load: odd"),
        (
            {"phase": "Starting", "attempt": 1, "blocked_by": Obstacle.NO_SPARK_EXECUTOR},
            "the Spark cluster gives it no executor",
        ),
        (
            {"phase": "Recovering", "attempt": 2, "next_at": 1_795_251_607_000, "error": NO_KAFKA},
            "no kafka; attempt 3 comes at 2026-11-21T09:00:07.000Z",
        ),
        ({"phase": "Failed", "next_at": 1, "error": NO_KAFKA}, "no kafka"),
        ({"phase": "Starting"}, None),
        ({"phase": "Starting", "attempt": 1}, "it starts again"),
        ({"phase": "Stopped", "desired": "stopped"}, "it is stopped"),
        ({"phase": "Stopped"}, None),
        ({"phase": "Finished"}, None),
        ({"phase": "Unknown", "reason": "no sign of its runner"}, "no sign of its runner"),
        ({"phase": "Unknown", "error": NO_KAFKA, "reason": "silence"}, "silence"),
    ],
)
def test_why_nothing_is_processed(known: dict[str, Any], cause: str | None) -> None:
    it = PipelineNow(**{"name": "orders", "desired": "running", "reason": None, **known})
    found = stuck_of(it)
    assert (found and found.cause) == cause
    assert found is None or found.hint or known.get("blocked_by") == "of_tomorrow"


@pytest.mark.parametrize(
    ("domain", "changed", "hint"),
    [
        ("user", True, "wait; or `waybill rollback orders` applies the manifest before this one"),
        ("user", False, "wait"),
        ("external", True, "wait"),
    ],
)
def test_an_error_of_a_change_names_the_way_back(domain: str, changed: bool, hint: str) -> None:
    error = LifecycleError(
        domain=domain,  # type: ignore[arg-type]
        message="the SQL is wrong",
        hint="wait",
        stage=None,
        retryable=False,
    )
    it = PipelineNow(
        name="orders", desired="running", phase="Failed", reason=None, error=error, changed=changed
    )
    found = stuck_of(it)
    assert found is not None
    assert found.hint is not None
    assert found.hint.startswith(hint)
    assert ("rollback" in found.hint) == ("rollback" in hint)


def test_it_is_told_of_each_pipeline_and_of_all(client: TestClient, store: FakeStore) -> None:
    store.put(slot(lifecycle=life("Running")), version=1)
    assert client.get("/v1/pipelines").json()["items"][0]["stuck"] is None
    store.away = True
    (item,) = client.get("/v1/pipelines").json()["items"]
    told = {"cause": "redis does not answer", "hint": "`waybill doctor` says what is away"}
    assert item["stuck"] == told
    assert client.get("/v1/pipelines/orders").json()["stuck"] == told


def test_each_cause_has_a_hint() -> None:
    assert set(HINTS) == set(DegradedCause)


def test_what_is_wrong_is_shown_while_its_runner_is_alive(
    client: TestClient, store: FakeStore
) -> None:
    found = (Condition(stage="load", cause="retrying", since=NOW),)
    store.put(replace(slot(lifecycle=life("Running")), conditions=found), version=1)
    (shown,) = client.get("/v1/pipelines/orders").json()["conditions"]
    assert (shown["kind"], shown["stage"], shown["cause"]) == ("degraded", "load", "retrying")
    assert shown["hint"] == "`waybill events orders` shows what failed before"
    (item,) = client.get("/v1/pipelines").json()["items"]
    assert item["conditions"] == [shown]
    silent = slot(lifecycle=life("Running"), heard_at=NOW - 60_000)
    store.put(replace(silent, conditions=found), version=2)
    assert client.get("/v1/pipelines/orders").json()["conditions"] == []


def test_a_stage_that_has_failed_says_why_and_may_be_started(
    client: TestClient, store: FakeStore
) -> None:
    failed = Condition(
        stage="load", cause="stage_failed", since=NOW, message="too many die", hint="mend it"
    )
    store.put(replace(slot(lifecycle=life("Running")), conditions=(failed,)), version=1)
    found = client.get("/v1/pipelines/orders").json()
    assert found["conditions"][0]["message"] == "too many die"
    assert found["stuck"] == {
        "cause": "stage load: too many die",
        "hint": "mend it; `waybill start orders --stage load` goes on",
    }
