"""Restarts over HTTP: how the run of before ends, and from where stages read again."""

import pytest
from fastapi.testclient import TestClient

from unit.ingress.fakes import FakeKafka
from waybill_shared.contract.beginnings import InputOffset
from waybill_shared.contract.codec import decode
from waybill_shared.contract.commands import Restart, StopMode
from waybill_shared.contract.events import Command


@pytest.mark.parametrize(("word", "mode"), [("safe", "checkpoint"), ("force", "force")])
def test_a_restart_says_how_the_run_of_before_ends(
    client: TestClient, kafka: FakeKafka, word: str, mode: str
) -> None:
    client.post("/v1/pipelines/orders/restart", params={"mode": word})
    (written,) = kafka.written
    assert decode(Command, written.value).body == Restart(mode=StopMode(mode))


@pytest.mark.parametrize("start_from", ["noon", ""])
def test_a_restart_from_elsewhere_is_refused(
    client: TestClient, kafka: FakeKafka, start_from: str
) -> None:
    answer = client.post("/v1/pipelines/orders/restart", params={"from": start_from})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["message"].startswith(f"from: '{start_from}' is none of")
    assert kafka.written == []


@pytest.mark.parametrize(
    ("params", "wanted"),
    [
        ({"state": "resume"}, Restart(confirmed=True)),
        ({"state": "fresh"}, Restart(start_from="fresh", confirmed=True)),
        (
            {"state": "fresh", "stage": "load"},
            Restart(start_from="fresh", stage="load", confirmed=True),
        ),
    ],
)
def test_a_restart_says_whether_stages_begin_again(
    client: TestClient, kafka: FakeKafka, params: dict[str, str], wanted: Restart
) -> None:
    client.post("/v1/pipelines/orders/restart", params={"yes": "true", **params})
    (written,) = kafka.written
    assert decode(Command, written.value).body == wanted


@pytest.mark.parametrize("params", [{}, {"state": "resume"}])
def test_a_restart_of_one_stage_that_begins_nowhere_else_is_refused(
    client: TestClient, kafka: FakeKafka, params: dict[str, str]
) -> None:
    answer = client.post("/v1/pipelines/orders/restart", params={"stage": "load", **params})
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert error["message"] == "stage=load names a stage, and nothing says where it begins"
    assert "from or state=fresh" in error["hint"]
    assert kafka.written == []


@pytest.mark.parametrize("state", ["resume", "fresh"])
@pytest.mark.parametrize("start_from", ["earliest", "7 days ago", "orders.in[0]=0"])
def test_a_restart_that_says_twice_where_to_begin_is_refused(
    client: TestClient, kafka: FakeKafka, state: str, start_from: str
) -> None:
    params = {"from": start_from, "state": state, "yes": "true"}
    answer = client.post("/v1/pipelines/orders/restart", params=params)
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert error["message"] == f"state={state} says where stages begin, and so does from"
    assert "state=resume" in error["hint"]
    assert kafka.written == []


def test_a_restart_may_say_from_which_offsets_a_stage_reads_again(
    client: TestClient, kafka: FakeKafka
) -> None:
    params = {"from": "orders.in[0]=12", "stage": "enrich", "yes": "true"}
    client.post("/v1/pipelines/orders/restart", params=params)
    (written,) = kafka.written
    offsets = (InputOffset(topic="orders.in", partition=0, offset=12),)
    wanted = Restart(offsets=offsets, stage="enrich", confirmed=True)
    assert decode(Command, written.value).body == wanted


def test_a_restart_may_begin_at_a_time(client: TestClient, kafka: FakeKafka) -> None:
    client.post("/v1/pipelines/orders/restart", params={"from": "1970-01-01T00:00:02Z"})
    (written,) = kafka.written
    assert decode(Command, written.value).body == Restart(at=2000)
