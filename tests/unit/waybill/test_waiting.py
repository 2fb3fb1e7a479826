"""Waiting for a token and for a pipeline: long polls, pauses, dropped connections, the deadline."""

import httpx2
import pytest

from waybill import (
    Client,
    NotFound,
    NotReady,
    OutcomeKind,
    PhaseNotReached,
    PhaseOutOfReach,
    PipelineFailed,
    StillInProgress,
    StillUnknown,
    Unreachable,
)
from waybill.testing import ManualClock, Response, ScriptedServer, problem
from waybill.waiting import BACKOFF_S_MAX

TOKEN_PATH = "/v1/tokens/wb1.abc"
COMPLETE = Response(json={"outcome": "complete", "accepted": 2})
IN_PROGRESS = Response(json={"outcome": "in_progress"})
UNKNOWN = Response(status=503, json={"outcome": "unknown"}, headers={"Retry-After": "3"})
CUT = Response(json={"outcome": "complete"}, cut=True)


def test_outcome_is_one_look(server: ScriptedServer, client: Client) -> None:
    server.answer("GET", TOKEN_PATH, IN_PROGRESS)
    outcome = client.outcome("wb1.abc")
    assert outcome.kind is OutcomeKind.IN_PROGRESS
    assert not outcome.final
    assert server.requests[0].params == {}


def test_unknown_is_an_outcome_not_an_error(server: ScriptedServer, client: Client) -> None:
    server.answer("GET", TOKEN_PATH, UNKNOWN)
    outcome = client.outcome("wb1.abc")
    assert outcome.kind is OutcomeKind.UNKNOWN
    assert outcome.retry_after_s == 3.0


def test_a_forged_token_is_not_found(server: ScriptedServer, client: Client) -> None:
    server.answer("GET", TOKEN_PATH, problem(404, "no such token"))
    with pytest.raises(NotFound, match="no such token"):
        client.wait("wb1.abc", timeout_s=60)


def test_wait_polls_long_until_the_outcome_is_final(server: ScriptedServer, client: Client) -> None:
    server.answer("GET", TOKEN_PATH, IN_PROGRESS, IN_PROGRESS, COMPLETE)
    outcome = client.wait("wb1.abc", timeout_s=100)
    assert outcome.complete
    assert outcome.final
    assert [request.params for request in server.requests] == [{"wait": "30"}] * 3


def test_wait_never_holds_a_request_beyond_its_deadline(
    server: ScriptedServer, client: Client
) -> None:
    server.answer("GET", TOKEN_PATH, COMPLETE)
    client.wait("wb1.abc", timeout_s=12)
    assert server.requests[0].params == {"wait": "12"}


def test_wait_pauses_when_the_server_does_not_hold_the_request(
    server: ScriptedServer, client: Client, clock: ManualClock
) -> None:
    server.answer("GET", TOKEN_PATH, IN_PROGRESS, IN_PROGRESS, COMPLETE)
    client.wait("wb1.abc", timeout_s=100)
    assert clock.slept == [0.25, 0.25]


def test_wait_raises_the_last_outcome_at_its_deadline(
    server: ScriptedServer, client: Client
) -> None:
    blocked = {"stage": "load", "state": "blocked", "blocked_by": "stage_stopped"}
    server.answer("GET", TOKEN_PATH, Response(json={"outcome": "in_progress", "stages": [blocked]}))
    with pytest.raises(StillInProgress, match="load blocked by stage_stopped") as raised:
        client.wait("wb1.abc", timeout_s=1)
    assert raised.value.outcome.stages[0].blocked_by == "stage_stopped"


def test_a_wait_that_ends_says_when_the_next_run_begins(
    server: ScriptedServer, client: Client
) -> None:
    at = {"blocked_by": "not_running", "next_run_at": "2026-11-29T03:00:00.000Z"}
    stage = {"stage": "load", "state": "blocked", **at}
    server.answer("GET", TOKEN_PATH, Response(json={"outcome": "in_progress", "stages": [stage]}))
    said = "load blocked by not_running until 2026-11-29T03:00:00"
    with pytest.raises(StillInProgress, match=said):
        client.wait("wb1.abc", timeout_s=1)


def test_wait_without_time_looks_once(server: ScriptedServer, client: Client) -> None:
    server.answer("GET", TOKEN_PATH, IN_PROGRESS)
    with pytest.raises(StillInProgress):
        client.wait("wb1.abc", timeout_s=0)
    assert len(server.requests) == 1


def test_wait_honours_retry_after_of_unknown(
    server: ScriptedServer, client: Client, clock: ManualClock
) -> None:
    server.answer("GET", TOKEN_PATH, UNKNOWN, COMPLETE)
    assert client.wait("wb1.abc", timeout_s=60).complete
    assert clock.slept == [3.0]


def test_wait_that_ends_unknown_is_not_told_as_in_progress(
    server: ScriptedServer, client: Client
) -> None:
    server.answer("GET", TOKEN_PATH, UNKNOWN)
    with pytest.raises(StillUnknown) as raised:
        client.wait("wb1.abc", timeout_s=5)
    assert raised.value.outcome.kind is OutcomeKind.UNKNOWN


def test_wait_reconnects_with_growing_and_bounded_pauses(
    server: ScriptedServer, client: Client, clock: ManualClock
) -> None:
    server.answer("GET", TOKEN_PATH, *[CUT] * 8, COMPLETE)
    assert client.wait("wb1.abc", timeout_s=60).complete
    assert clock.slept == [0.1, 0.2, 0.4, 0.8, 1.6, BACKOFF_S_MAX, BACKOFF_S_MAX, BACKOFF_S_MAX]


def test_an_answer_resets_the_pauses(
    server: ScriptedServer, client: Client, clock: ManualClock
) -> None:
    server.answer("GET", TOKEN_PATH, CUT, CUT, IN_PROGRESS, CUT, COMPLETE)
    assert client.wait("wb1.abc", timeout_s=60).complete
    assert clock.slept == [0.1, 0.2, 0.25, 0.1]


def test_wait_gives_up_on_dropped_connections_at_its_deadline(
    server: ScriptedServer, client: Client, clock: ManualClock
) -> None:
    server.answer("GET", TOKEN_PATH, CUT)
    with pytest.raises(Unreachable):
        client.wait("wb1.abc", timeout_s=5)
    assert sum(clock.slept) == pytest.approx(5)


def test_wait_rides_out_a_service_that_is_not_ready(
    server: ScriptedServer, client: Client, clock: ManualClock
) -> None:
    starting = Response(status=503, json={"title": "starting"}, headers={"Retry-After": "1"})
    server.answer("GET", TOKEN_PATH, starting, COMPLETE)
    assert client.wait("wb1.abc", timeout_s=60).complete
    assert clock.slept == [1.0]


def test_a_not_ready_service_is_told_at_the_deadline(
    server: ScriptedServer, client: Client
) -> None:
    server.answer("GET", TOKEN_PATH, Response(status=503, json={"title": "starting"}))
    with pytest.raises(NotReady, match="starting"):
        client.wait("wb1.abc", timeout_s=2)


def test_wait_fails_at_once_when_nothing_was_ever_there(clock: ManualClock) -> None:
    def refuse(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("refused", request=request)

    transport = httpx2.MockTransport(refuse)
    with (
        Client("http://waybill", transport=transport, clock=clock) as client,
        pytest.raises(Unreachable, match="nothing listens"),
    ):
        client.wait("wb1.abc", timeout_s=60)
    assert clock.slept == []


def pipeline(phase: str, **more: object) -> Response:
    return Response(json={"name": "orders", "phase": phase, **more})


def test_wait_pipeline_returns_once_it_is_in_the_phase(
    server: ScriptedServer, client: Client
) -> None:
    server.answer("GET", "/v1/pipelines/orders", pipeline("Starting"), pipeline("Running"))
    assert client.wait_pipeline("orders").phase == "Running"


def test_wait_pipeline_that_waits_for_running_ends_when_it_is_finished(
    server: ScriptedServer, client: Client
) -> None:
    server.answer("GET", "/v1/pipelines/orders", pipeline("Starting"), pipeline("Finished"))
    assert client.wait_pipeline("orders").phase == "Finished"


def test_wait_pipeline_tells_why_it_failed(server: ScriptedServer, client: Client) -> None:
    error = {"domain": "user", "message": "no such column", "hint": "correct the SQL"}
    server.answer("GET", "/v1/pipelines/orders", pipeline("Failed", error=error))
    with pytest.raises(PipelineFailed, match=r"is Failed: no such column \(correct the SQL\)$"):
        client.wait_pipeline("orders", timeout_s=60)


def test_wait_pipeline_can_wait_for_failed(server: ScriptedServer, client: Client) -> None:
    server.answer("GET", "/v1/pipelines/orders", pipeline("Failed"))
    assert client.wait_pipeline("orders", "Failed").failed


def test_wait_pipeline_tells_the_phase_at_its_deadline(
    server: ScriptedServer, client: Client
) -> None:
    server.answer("GET", "/v1/pipelines/orders", pipeline("Stopped", reason="asked to"))
    with pytest.raises(PhaseNotReached, match="is Stopped: asked to; not Running yet") as raised:
        client.wait_pipeline("orders", timeout_s=2)
    assert raised.value.pipeline.phase == "Stopped"


@pytest.mark.parametrize(
    ("phase", "desired", "wanted", "command"),
    [
        ("Stopped", "stopped", "Running", "start"),
        ("Stopped", "stopped", "Failed", "start"),
        ("Finished", "running", "Stopped", "start"),
        ("Paused", "paused", "Running", "resume"),
        ("Paused", "paused", "Finished", "resume"),
    ],
)
def test_a_wait_without_others_ends_at_once_if_somebody_must_act(
    server: ScriptedServer, client: Client, *, phase: str, desired: str, wanted: str, command: str
) -> None:
    server.answer("GET", "/v1/pipelines/orders", pipeline(phase, desired=desired))
    said = f"is {phase}, and not {wanted} before somebody acts: `waybill {command} orders`"
    with pytest.raises(PhaseOutOfReach, match=said) as raised:
        client.wait_pipeline("orders", wanted, timeout_s=60, somebody_acts=False)
    assert raised.value.pipeline.phase == phase
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("phase", "desired", "wanted"),
    [
        ("Stopped", "running", "Running"),  # it was started, and that is not reported yet
        ("Running", "running", "Stopped"),
        ("Starting", "running", "Finished"),
        ("Draining", "stopped", "Stopped"),
        ("CheckpointStopping", "stopped", "Stopped"),
        ("Stopping", "stopped", "Stopped"),
        ("Paused", "paused", "Recovering"),  # its driver may crash
        ("Stopped", "stopped", "Unknown"),
    ],
)
def test_a_phase_that_may_come_by_itself_is_waited_for(
    server: ScriptedServer, client: Client, *, phase: str, desired: str, wanted: str
) -> None:
    server.answer("GET", "/v1/pipelines/orders", pipeline(phase, desired=desired), pipeline(wanted))
    found = client.wait_pipeline("orders", wanted, timeout_s=60, somebody_acts=False)
    assert found.phase == wanted


def test_a_wait_goes_on_while_a_schedule_acts(server: ScriptedServer, client: Client) -> None:
    finished = pipeline("Finished", desired="running", next_run_at="2026-11-29T03:00:00.000Z")
    server.answer("GET", "/v1/pipelines/orders", finished, pipeline("Failed"))
    with pytest.raises(PipelineFailed):
        client.wait_pipeline("orders", "Starting", timeout_s=60, somebody_acts=False)


def test_a_wait_goes_on_while_others_may_act(server: ScriptedServer, client: Client) -> None:
    stopped = pipeline("Stopped", desired="stopped")
    server.answer("GET", "/v1/pipelines/orders", stopped, stopped, pipeline("Running"))
    assert client.wait_pipeline("orders").phase == "Running"


def test_a_pipeline_applied_a_moment_ago_may_not_be_told_of_yet(
    server: ScriptedServer, client: Client
) -> None:
    missing = problem(404, "no pipeline orders")
    server.answer("GET", "/v1/pipelines/orders", missing, missing, pipeline("Running"))
    assert client.wait_pipeline("orders").phase == "Running"


def test_a_pipeline_that_stays_missing_is_not_found(
    server: ScriptedServer, client: Client, clock: ManualClock
) -> None:
    server.answer("GET", "/v1/pipelines/orders", problem(404, "no pipeline orders"))
    with pytest.raises(NotFound, match="no pipeline orders"):
        client.wait_pipeline("orders", timeout_s=60)
    assert clock.now == pytest.approx(2)
