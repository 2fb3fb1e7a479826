"""The API key: sent when there is one, shown nowhere."""

import asyncio
import logging

import httpx2
import pytest

from waybill import AsyncClient, Client, NotAllowed, Unreachable, WaybillError
from waybill.testing import Response, ScriptedServer, problem

KEY = "wb_dev_3f9c0a1b2c3d_s3cr3tS3cr3t"
PIPELINES = Response(json={"items": []})


def sent(server: ScriptedServer) -> list[str | None]:
    return [request.headers.get("authorization") for request in server.requests]


def test_a_key_is_sent_with_every_request(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAYBILL_API_KEY", "wb_dev_of_the_environment")
    server.answer("GET", "/v1/pipelines", PIPELINES)

    async def later(key: str | None) -> None:
        async with AsyncClient(server.url, api_key=key) as client:
            await client.pipelines()

    for key in (KEY, None):
        with Client(server.url, api_key=key) as client:
            client.pipelines()
        asyncio.run(later(key))
    assert sent(server) == [f"Bearer {KEY}"] * 2 + ["Bearer wb_dev_of_the_environment"] * 2


def test_without_a_key_none_is_sent(
    server: ScriptedServer, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAYBILL_API_KEY", "")
    server.answer("GET", "/v1/pipelines", PIPELINES)
    client.pipelines()
    with Client(server.url) as other:
        other.pipelines()
    assert sent(server) == [None, None]


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_is_told_without_it(
    server: ScriptedServer, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    server.answer("GET", "/v1/pipelines", problem(status, "the key may not", hint="ask an admin"))
    with (
        caplog.at_level(logging.DEBUG),
        Client(server.url, api_key=KEY) as client,
        pytest.raises(NotAllowed, match="may not") as raised,
    ):
        client.pipelines()
    assert (raised.value.status, raised.value.hint) == (status, "ask an admin")
    shown = [repr(client), repr(vars(client)), str(raised.value), repr(vars(raised.value))]
    assert not [text for text in (*shown, caplog.text) if KEY in text or "s3cr3t" in text]


def test_a_failed_connection_is_told_without_the_key(caplog: pytest.LogCaptureFixture) -> None:
    def refuse(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("refused", request=request)

    transport = httpx2.MockTransport(refuse)
    with (
        caplog.at_level(logging.DEBUG),
        Client("http://waybill", api_key=KEY, transport=transport) as client,
        pytest.raises(Unreachable) as raised,
    ):
        client.pipelines()
    assert KEY not in f"{raised.value!r} {raised.value.__cause__!r} {caplog.text}"


@pytest.mark.parametrize("bad", ["", "two words", "line\nbreak", "schlüssel"])
def test_what_no_header_takes_is_refused_without_showing_it(bad: str) -> None:
    with pytest.raises(WaybillError, match="api_key is no API key") as raised:
        Client("http://waybill", api_key=bad)
    assert not bad or bad not in str(raised.value)


def test_a_key_is_not_carried_to_another_host(server: ScriptedServer) -> None:
    """A redirect is not followed: Waybill sends none."""
    moved = Response(status=307, headers={"Location": "http://127.0.0.1:1/v1/pipelines"})
    server.answer("GET", "/v1/pipelines", moved)
    with Client(server.url, api_key=KEY) as client, pytest.raises(Exception, match="status 307"):
        client.pipelines()
