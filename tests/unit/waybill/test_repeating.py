"""A `send` has a key, and is repeated with it: what Waybill was told twice it keeps once."""

import asyncio
import json
from pathlib import Path

import pytest

from unit.waybill.conftest import Command
from waybill import AsyncClient, Client, NotReady, Unreachable, Unusable
from waybill.errors import Invalid
from waybill.testing import AsyncManualClock, ManualClock, Response, ScriptedServer, problem

RECORDS = "/v1/pipelines/orders/inputs/orders/records"
RECEIPT = Response(json={"token": "wb1.abc", "accepted": 1, "rejected": []})
CUT = Response(json={"token": "wb1.abc"}, cut=True)
ROWS = [{"id": 1}]
KEY = "idempotency-key"


def not_now(slug: str, status: int = 503) -> Response:
    return problem(status, "not now", type=f"urn:waybill:problem:{slug}")


def keys_in(server: ScriptedServer) -> list[str | None]:
    return [request.headers.get(KEY) for request in server.requests]


def test_a_send_is_repeated_with_its_key(server: ScriptedServer, client: Client) -> None:
    down = Response(status=502, content=b"<html>", content_type="text/html")
    server.answer(
        "POST", RECORDS, CUT, not_now("not_available_now"), down, not_now("request_running", 409),
        RECEIPT, RECEIPT,
    )  # fmt: skip
    assert client.send("orders", "orders", ROWS).token == "wb1.abc"
    client.send("orders", "orders", ROWS)
    *same, other = keys_in(server)
    assert len(same) == 5
    assert len(set(same)) == 1
    assert other not in {None, same[0]}
    assert len({request.body for request in server.requests}) == 1


def test_the_asynchronous_client_repeats_too(server: ScriptedServer) -> None:
    server.answer("POST", RECORDS, CUT, RECEIPT)

    async def send() -> str:
        async with AsyncClient(server.url, clock=AsyncManualClock()) as client:
            return (await client.send("orders", "orders", ROWS, key="mine")).token

    assert asyncio.run(send()) == "wb1.abc"
    assert keys_in(server) == ["mine", "mine"]


def test_it_ends_when_the_time_is_over(server: ScriptedServer, clock: ManualClock) -> None:
    server.answer("POST", RECORDS, CUT)
    with Client(server.url, clock=clock, repeat_s=10) as client, pytest.raises(Unreachable):
        client.send("orders", "orders", ROWS)
    assert sum(clock.slept) == pytest.approx(10)


def test_where_nobody_listens_it_is_told_at_once(clock: ManualClock) -> None:
    refused = pytest.raises(Unreachable, match="nothing listens")
    with Client("http://127.0.0.1:1", clock=clock) as client, refused:
        client.send("orders", "orders", ROWS)
    assert clock.slept == []


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (not_now("topic_recreated"), NotReady),
        (not_now("key_reused", 422), Invalid),
        (problem(422, "none fits"), Invalid),
    ],
)
def test_what_stays_wrong_is_told_at_once(
    server: ScriptedServer, client: Client, answer: Response, error: type[Exception]
) -> None:
    server.answer("POST", RECORDS, answer)
    with pytest.raises(error):
        client.send("orders", "orders", ROWS)
    assert len(server.requests) == 1


def test_who_wants_no_repeats_sends_no_key(server: ScriptedServer, clock: ManualClock) -> None:
    server.answer("POST", RECORDS, CUT)
    with Client(server.url, clock=clock, repeat_s=0) as client, pytest.raises(Unreachable):
        client.send("orders", "orders", ROWS)
    assert keys_in(server) == [None]


@pytest.mark.parametrize("key", ["", "a" * 256, "é", "a\nb", "a ", " a"])
def test_a_key_that_is_none_is_not_sent(server: ScriptedServer, client: Client, key: str) -> None:
    with pytest.raises(Unusable, match="1 to 255 printable"):
        client.send("orders", "orders", ROWS, key=key)
    assert server.requests == []


def test_each_request_of_the_command_has_a_key_of_its_own(
    server: ScriptedServer, command: Command, tmp_path: Path
) -> None:
    server.answer("POST", RECORDS, RECEIPT)
    source = tmp_path / "rows.ndjson"
    source.write_text("".join(json.dumps({"id": n}) + "\n" for n in range(25_000)))
    server.answer("POST", "/v1/tokens", Response(json={"token": "wb1.all"}))
    for _ in range(2):
        assert command("send", "orders", "orders", str(source), "--key", "day 1").exit_code == 0
    keys = [request.headers.get(KEY) for request in server.asked("POST", RECORDS)]
    assert keys == ["day 1", "day 1/2", "day 1/3"] * 2


@pytest.mark.parametrize("key", ["", "a" * 241])
def test_a_key_that_does_not_serve_all_requests_is_refused_before_the_first(
    server: ScriptedServer, command: Command, key: str
) -> None:
    told = command("send", "orders", "orders", '{"id": 1}', "--key", key)
    assert told.exit_code == 2
    assert "1 to 240 characters" in told.stderr
    assert server.requests == []
