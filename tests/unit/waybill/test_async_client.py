"""The asynchronous client: the same words, questions, answers, pauses and errors."""

import asyncio
import inspect
import socket
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import assert_type

import pytest

from waybill import (
    AsyncClient,
    AsyncIssuedToken,
    AsyncReceipt,
    AsyncToken,
    Client,
    IssuedToken,
    NoAnswer,
    NotFound,
    Outcome,
    Position,
    Receipt,
    RecordLocation,
    StillInProgress,
    StillUnknown,
    Token,
    Unreachable,
    Unusable,
)
from waybill.testing import (
    AsyncManualClock,
    ManualClock,
    Response,
    ScriptedServer,
    event_stream,
    problem,
)

TOKEN_PATH = "/v1/tokens/wb1.abc"
PIPELINE_PATH = "/v1/pipelines/orders"
OPERATION = {"operation": "op-1", "pipeline": "orders", "action": "stop"}
STATE = {"id": "op-1", "pipeline": "orders", "action": "stop"}
PLACE = Position(topic="orders.in", topic_id="Hb0c", partition=0, offset=4)
STARTED, DONE = Response(json={"outcome": "in_progress"}), Response(json={"outcome": "complete"})
CUT = Response(json={"outcome": "in_progress"}, cut=True)
UNKNOWN = Response(status=503, json={"outcome": "unknown"}, headers={"Retry-After": "3"})
RECEIPT = Response(json={"token": "wb1.abc", "accepted": 1, "rejected": []})
ISSUED = Response(json={"token": "wb1.abc", "pipeline": "orders"})
NOON, CENTS = datetime(2026, 11, 21, 12, tzinfo=UTC), Decimal("0.10")

Use = Callable[[AsyncClient], Awaitable[object]]

# The method, its arguments, the route, and the replies.
PROPOSAL = Response(json={"topic": "orders.in", "records": 2, "schema": "id BIGINT", "notes": []})
CONVERSION = Response(json={"manifest": "version: 1"})
CALLS: list[tuple[str, tuple[object, ...], Mapping[str, object], str, str, list[Response]]] = [
    ("send", ("orders", "orders", [{"id": 1}]), {"request_id": "r"}, "POST",
     f"{PIPELINE_PATH}/inputs/orders/records", [RECEIPT]),
    ("token_for", ("orders",), {"input": "orders"}, "POST", "/v1/tokens", [ISSUED]),
    ("token_for", ("orders",), {"positions": [PLACE]}, "POST", "/v1/tokens", [ISSUED]),
    ("merge", (["wb1.a", "wb1.b"],), {}, "POST", "/v1/tokens", [ISSUED]),
    ("merge", (["wb1.a"],), {}, "POST", "/v1/tokens", [problem(404, "no such token")]),
    ("merge", (["wb1.a", "x"],), {}, "POST", "/v1/tokens", [ISSUED]),
    ("wait", ("",), {}, "GET", TOKEN_PATH, [DONE]),
    ("send", ("orders", "orders", [{"at": NOON, "amount": CENTS}]), {}, "POST",
     f"{PIPELINE_PATH}/inputs/orders/records", [RECEIPT]),
    ("send", ("orders", "orders", [{"amount": float("nan")}]), {}, "POST",
     f"{PIPELINE_PATH}/inputs/orders/records", [RECEIPT]),
    ("outcome", ("wb1.abc",), {}, "GET", TOKEN_PATH, [UNKNOWN]),
    ("outcome", ("wb1.abc",), {}, "GET", TOKEN_PATH, [problem(404, "no such token")]),
    ("wait", ("wb1.abc",), {"timeout_s": 60}, "GET", TOKEN_PATH, [STARTED, CUT, UNKNOWN, DONE]),
    ("wait", ("wb1.abc",), {"timeout_s": 1}, "GET", TOKEN_PATH, [STARTED]),
    ("wait", ("wb1.abc",), {"timeout_s": 5}, "GET", TOKEN_PATH, [UNKNOWN]),
    ("wait", ("wb1.abc",), {"timeout_s": 5}, "GET", TOKEN_PATH, [CUT]),
    ("apply", ("name: orders\n",), {}, "PUT", PIPELINE_PATH,
     [Response(status=202, json=OPERATION)]),
    ("apply", ("name: orders\n",), {"allow_shared": True}, "PUT", PIPELINE_PATH,
     [Response(status=202, json=OPERATION)]),
    ("apply", ("name: orders\n",), {}, "PUT", PIPELINE_PATH, [problem(409, "written, too")]),
    ("check", ("name: orders\n",), {"allow_shared": True}, "POST", "/v1/validate",
     [Response(json={"errors": [], "warnings": ["written, too"], "graph": None})]),
    ("propose", ("orders.in",), {}, "POST", "/v1/propose", [PROPOSAL]),
    ("propose", ("orders.in",), {}, "POST", "/v1/propose", [problem(404, "no such topic")]),
    ("propose", ("",), {}, "POST", "/v1/propose", [PROPOSAL]),
    ("convert", ("CREATE TABLE t (a INT)", "shop"), {}, "POST", "/v1/convert", [CONVERSION]),
    ("start", ("orders",), {}, "POST", f"{PIPELINE_PATH}/start",
     [Response(status=202, json=OPERATION)]),
    ("stop", ("orders",), {}, "POST", f"{PIPELINE_PATH}/stop",
     [Response(status=202, json=OPERATION)]),
    ("restart", ("orders", "latest"), {}, "POST", f"{PIPELINE_PATH}/restart",
     [Response(status=202, json=OPERATION)]),
    ("restart", ("orders",), {"state": "fresh", "yes": True}, "POST", f"{PIPELINE_PATH}/restart",
     [Response(status=202, json=OPERATION)]),
    ("set_offsets", ("orders", "latest"), {"stage": "load", "yes": True}, "PATCH",
     f"{PIPELINE_PATH}/offsets", [Response(status=202, json=OPERATION)]),
    ("reset_offsets", ("orders",), {}, "DELETE", f"{PIPELINE_PATH}/offsets",
     [Response(status=202, json=OPERATION)]),
    ("rescale", ("orders", 4), {}, "POST", f"{PIPELINE_PATH}/rescale",
     [Response(status=202, json=OPERATION)]),
    ("put_dead_letter", ("orders", RecordLocation(topic="in", partition=0, offset=3), "x"), {},
     "POST", f"{PIPELINE_PATH}/dead-letters", [Response(status=202, json=OPERATION)]),
    ("grow_topic", ("orders", "orders", 12), {"yes": True}, "POST",
     f"{PIPELINE_PATH}/inputs/orders/grow",
     [Response(json={"topic": "in", "partitions": 12, "added": 8})]),
    ("delete", ("orders",), {}, "DELETE", PIPELINE_PATH, [Response(status=202, json=OPERATION)]),
    ("maintain", ("orders", "lake"), {"dry_run": True}, "POST",
     f"{PIPELINE_PATH}/sinks/lake/maintain", [Response(status=202, json=OPERATION)]),
    ("stop", ("orders",), {"wait_s": 0}, "POST", f"{PIPELINE_PATH}/stop",
     [Response(status=202, json=OPERATION)]),
    ("stop", ("orders",), {}, "POST", f"{PIPELINE_PATH}/stop",
     [Response(json={**STATE, "state": "done"})]),
    ("stop", ("orders",), {}, "POST", f"{PIPELINE_PATH}/stop",
     [problem(409, "superseded", **STATE, state="failed", problem="superseded")]),
    ("stop", ("orders",), {}, "POST", f"{PIPELINE_PATH}/stop", [problem(409, "not now")]),
    ("operation", ("op-1",), {"wait_s": 30}, "GET", "/v1/operations/op-1",
     [Response(json={**STATE, "state": "pending"}), Response(json={**STATE, "state": "done"})]),
    ("pipelines", (), {}, "GET", "/v1/pipelines",
     [Response(json={"items": [{"name": "a", "phase": "Running"}], "next_cursor": "a"}),
      Response(json={"items": [{"name": "b", "phase": "Running"}], "next_cursor": None})]),
    ("pipelines", (), {"phases": ["Failed"], "tags": ["a", "b"]}, "GET", "/v1/pipelines",
     [Response(json={"items": [], "next_cursor": "a"}),
      Response(json={"items": [{"name": "b", "phase": "Failed"}], "next_cursor": None})]),
    ("pipeline", ("orders",), {}, "GET", PIPELINE_PATH,
     [Response(json={"name": "orders", "phase": "Running"})]),
    ("pipeline", ("orders",), {}, "GET", PIPELINE_PATH, [problem(403, "this key may not")]),
    ("pipeline", ("orders",), {}, "GET", PIPELINE_PATH, [Response(content=b"<html>")]),
    ("wait_pipeline", ("orders",), {"timeout_s": 9}, "GET", PIPELINE_PATH,
     [problem(404, "none"), Response(json={"name": "orders", "phase": "Running"})]),
    ("wait_pipeline", ("orders",), {"timeout_s": 2}, "GET", PIPELINE_PATH,
     [Response(json={"name": "orders", "phase": "Stopped"})]),
    ("wait_pipeline", ("orders",), {"somebody_acts": False}, "GET", PIPELINE_PATH,
     [Response(json={"name": "orders", "phase": "Stopped", "desired": "stopped"})]),
    ("follow", ("wb1.abc",), {}, "GET", TOKEN_PATH,
     [event_stream({"outcome": "in_progress", "version": 4}, cut=True), UNKNOWN,
      event_stream({"outcome": "complete", "version": 5})]),
    ("follow", ("wb1.abc",), {"timeout_s": 3}, "GET", TOKEN_PATH,
     [event_stream({"outcome": "in_progress"}, cut=True)]),
    ("follow", ("wb1.abc",), {}, "GET", TOKEN_PATH, [problem(410, "expired")]),
]  # fmt: skip


@pytest.mark.parametrize("call", CALLS, ids=lambda call: f"{call[0]}-{len(call[5])}")
def test_both_clients_ask_hear_pause_and_fail_alike(
    call: tuple[str, tuple[object, ...], Mapping[str, object], str, str, list[Response]],
) -> None:
    name, arguments, named, method, path, replies = call
    seen = []
    for run in (_sync, _async):
        with ScriptedServer() as server:
            server.answer(method, path, *replies)
            result, slept = run(server.url, name, arguments, named)
            asked = [
                (r.method, r.path, r.params, r.body, _told(r.headers)) for r in server.requests
            ]
            seen.append((_plain(result, server.url), slept, asked))
    assert seen[0] == seen[1]


def _sync(
    url: str, name: str, arguments: tuple[object, ...], named: Mapping[str, object]
) -> tuple[object, list[float]]:
    clock = ManualClock()
    with Client(url, clock=clock) as client:
        try:
            found = getattr(client, name)(*arguments, **named)
            return list(found) if name == "follow" else found, clock.slept
        except Exception as error:  # noqa: BLE001 - compared with the other's
            return error, clock.slept


def _async(
    url: str, name: str, arguments: tuple[object, ...], named: Mapping[str, object]
) -> tuple[object, list[float]]:
    clock = AsyncManualClock()

    async def run() -> object:
        async with AsyncClient(url, clock=clock) as client:
            try:
                found = getattr(client, name)(*arguments, **named)
                if name == "follow":
                    return [outcome async for outcome in found]
                return await found
            except Exception as error:  # noqa: BLE001 - compared with the other's
                return error

    return asyncio.run(run()), clock.slept


def _told(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers that are the SDK's own, and not the HTTP library's."""
    ours = {"accept", "content-type", "last-event-id", "x-request-id"}
    return {name: value for name, value in headers.items() if name in ours}


def _plain(result: object, url: str) -> str:
    """What a user sees of it, whichever client it came from and wherever the server was."""
    kind = type(result).__name__ if isinstance(result, Exception) else ""
    return f"{kind} {result!r}".replace("AsyncReceipt", "Receipt").replace(
        "AsyncIssuedToken", "IssuedToken"
    ).replace(url, "http://waybill")  # fmt: skip


@pytest.mark.parametrize("kind", [Client, AsyncClient, Token, AsyncToken])
def test_every_public_method_says_its_contract(kind: type) -> None:
    members = inspect.getmembers(kind, inspect.isfunction)
    own = [member for name, member in members if name in vars(kind) and not name.startswith("_")]
    assert own
    assert not [member.__name__ for member in own if not member.__doc__]


def in_client(server: ScriptedServer, use: Use) -> None:
    async def run() -> None:
        async with AsyncClient(server.url, clock=AsyncManualClock()) as client:
            await use(client)

    asyncio.run(run())


def test_a_token_is_awaited(server: ScriptedServer) -> None:
    server.answer("POST", f"{PIPELINE_PATH}/inputs/orders/records", RECEIPT)
    server.answer("POST", "/v1/tokens", Response(json={"token": "wb1.merged"}))
    server.answer("GET", TOKEN_PATH, STARTED, DONE)
    server.answer("GET", "/v1/tokens/wb1.merged", event_stream({"outcome": "lost"}))

    async def use(client: AsyncClient) -> None:
        receipt = await client.send("orders", "orders", [{"id": 1}])
        assert (await receipt.token.outcome()).kind == "in_progress"
        assert (await receipt.token.wait(timeout_s=9)).complete
        merged = await receipt.token.merge("wb1.other")
        assert [outcome.kind async for outcome in merged.follow()] == ["lost"]

    in_client(server, use)


def test_many_wait_at_the_same_time_on_one_client(server: ScriptedServer) -> None:
    for number in range(20):
        server.answer("GET", f"/v1/tokens/wb1.{number}", STARTED, DONE)

    async def use(client: AsyncClient) -> None:
        waits = [client.wait(f"wb1.{number}", timeout_s=60) for number in range(20)]
        assert all(outcome.complete for outcome in await asyncio.gather(*waits))

    in_client(server, use)


def test_a_wait_can_be_cancelled(server: ScriptedServer) -> None:
    server.answer("GET", TOKEN_PATH, STARTED)

    async def run() -> None:
        async with AsyncClient(server.url) as client:
            waiting = asyncio.create_task(client.wait("wb1.abc", timeout_s=60))
            while not server.requests:
                await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting

    asyncio.run(run())


def test_a_silent_server_is_told_after_the_time_out() -> None:
    async def ask(url: str) -> None:
        async with AsyncClient(url, timeout_s=0.05) as client:
            await client.pipelines()

    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(NoAnswer, match=r"within 0\.05 s"):
            asyncio.run(ask(url))


def test_what_cannot_be_a_token_is_refused_at_once() -> None:
    client = AsyncClient("http://waybill")
    for ask in (client.token, client.follow):
        with pytest.raises(Unusable, match="the token is empty"):
            ask("")
    asyncio.run(client.close())


async def typed(client: Client, later: AsyncClient) -> None:
    """Never run: mypy sees that every answer has the type that the documentation says."""
    assert_type(client.send("p", "i", []), Receipt)
    assert_type(client.send("p", "i", []).token, Token)
    assert_type(client.token_for("p", input="i"), IssuedToken)
    assert_type(client.merge(["t"]), Token)
    assert_type(client.merge([client.send("p", "i", []), client.token("t")]).wait(), Outcome)
    assert_type(await later.send("p", "i", []), AsyncReceipt)
    assert_type((await later.send("p", "i", [])).token, AsyncToken)
    assert_type(await later.token_for("p", input="i"), AsyncIssuedToken)
    assert_type(await later.merge(["t"]), AsyncToken)
    assert_type(await (await later.merge(["t"])).wait(), Outcome)
    outcomes = (NotFound, StillInProgress, StillUnknown, Unreachable)
    assert all(issubclass(kind, Exception) for kind in outcomes)
