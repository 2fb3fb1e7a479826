"""What is only a matter of moments is waited out; own changes are known to later requests."""

import asyncio
from collections.abc import Callable

import pytest

from unit.waybill.conftest import Command
from waybill import AsyncClient, Client, NotReady
from waybill.models import Operation
from waybill.testing import AsyncManualClock, ManualClock, Response, ScriptedServer
from waybill.waiting import MOMENT_S_MAX

RECORDS = "/v1/pipelines/orders/inputs/orders/records"
UID = "3f1d7f36-7a02-5e5a-9d0c-6a4a4b1b5a10"
RECEIPT = Response(json={"token": "wb1.abc", "accepted": 1, "rejected": []})
ISSUED = Response(json={"token": "wb1.abc", "pipeline": "orders"})
ACCEPTED = Response(json={"operation": "op", "pipeline": "orders", "action": "apply"})
ROWS = [{"id": 1}]


def not_now(slug: str) -> Response:
    body = {
        "type": f"urn:waybill:problem:{slug}",
        "title": slug,
        "status": 503,
        "detail": "not now",
    }
    return Response(status=503, json=body, headers={"Retry-After": "1"})


def done(action: str = "apply", **fields: object) -> Response:
    told = {"generation": 3, "pipeline_uid": UID, **fields}
    return Response(
        json={"id": "op", "pipeline": "orders", "action": action, "state": "done", **told}
    )


MOMENTARY = pytest.mark.parametrize(
    "slug", ["pipeline_not_ready", "input_not_ready", "pipeline_behind"]
)


@MOMENTARY
def test_what_is_a_matter_of_moments_is_asked_again(
    server: ScriptedServer, client: Client, clock: ManualClock, slug: str
) -> None:
    server.answer("POST", RECORDS, not_now(slug), not_now(slug), RECEIPT)
    server.answer("POST", "/v1/tokens", *[not_now(slug), ISSUED] * 2)
    server.answer("PUT", "/v1/pipelines/orders", not_now(slug), ACCEPTED)
    known = {"name": "orders", "phase": "Running"}
    server.answer("GET", "/v1/pipelines/orders", not_now(slug), Response(json=known))
    server.answer("GET", "/v1/pipelines", not_now(slug), Response(json={"items": [known]}))

    assert client.send("orders", "orders", ROWS).accepted == 1
    assert client.token_for("orders", input="orders").token == "wb1.abc"
    assert client.apply("name: orders").pending
    assert client.pipeline("orders").name == "orders"
    assert [each.name for each in client.pipelines()] == ["orders"]
    assert client.merge(["wb1.abc"]) == "wb1.abc"
    assert clock.slept == [1.0] * 7


@MOMENTARY
def test_the_asynchronous_client_asks_again_too(server: ScriptedServer, slug: str) -> None:
    server.answer("POST", RECORDS, not_now(slug), RECEIPT)
    server.answer("POST", "/v1/tokens", not_now(slug), ISSUED)
    clock = AsyncManualClock()

    async def run() -> None:
        async with AsyncClient(server.url, clock=clock) as client:
            await client.send("orders", "orders", ROWS)
            await client.token_for("orders", input="orders")

    asyncio.run(run())
    assert clock.slept == [1.0, 1.0]


def test_moments_have_an_end(server: ScriptedServer, client: Client, clock: ManualClock) -> None:
    server.answer("POST", "/v1/tokens", not_now("pipeline_behind"))

    with pytest.raises(NotReady, match="not now"):
        client.token_for("orders", input="orders")

    assert clock.now == MOMENT_S_MAX


def test_a_refusal_that_may_have_been_carried_out_is_the_callers(
    server: ScriptedServer, client: Client, clock: ManualClock
) -> None:
    server.answer("POST", "/v1/tokens", not_now("temporarily_unavailable"))

    with pytest.raises(NotReady):
        client.token_for("orders", input="orders")

    assert clock.slept == []


def if_match(server: ScriptedServer, path: str = RECORDS) -> list[str | None]:
    return [request.headers.get("if-match") for request in server.asked("POST", path)]


def test_after_its_own_change_a_client_wants_nothing_older(
    server: ScriptedServer, client: Client
) -> None:
    server.answer("POST", RECORDS, RECEIPT)
    server.answer("POST", "/v1/tokens", ISSUED)
    server.answer("GET", "/v1/operations/op", done())

    client.send("orders", "orders", ROWS)
    client.operation("op")
    client.send("orders", "orders", ROWS)
    client.token_for("orders", input="orders")
    client.send("orders", "orders", ROWS, generation=7)

    assert if_match(server) == [None, f'"{UID}/3"', '"7"']
    assert if_match(server, "/v1/tokens") == [f'"{UID}/3"']


def test_an_earlier_change_that_is_asked_for_again_makes_nothing_older_good_enough(
    server: ScriptedServer, client: Client
) -> None:
    server.answer("POST", RECORDS, RECEIPT)
    server.answer("GET", "/v1/operations/op", done(), done(generation=2))
    client.operation("op")
    client.operation("op")

    client.send("orders", "orders", ROWS)

    assert if_match(server) == [f'"{UID}/3"']


def test_after_its_own_change_an_asynchronous_client_wants_nothing_older(
    server: ScriptedServer,
) -> None:
    server.answer("POST", RECORDS, RECEIPT)
    server.answer("POST", "/v1/tokens", ISSUED)
    server.answer("GET", "/v1/operations/op", done("restart"))

    async def run() -> None:
        async with AsyncClient(server.url) as client:
            await client.operation("op")
            await client.send("orders", "orders", ROWS)
            await client.token_for("orders", input="orders", generation=7)

    asyncio.run(run())
    assert if_match(server) == [f'"{UID}/3"']
    assert if_match(server, "/v1/tokens") == ['"7"']


@pytest.mark.parametrize(
    "told",
    [
        pytest.param(lambda client: client.delete("orders"), id="accepted"),
        pytest.param(lambda client: client.operation("gone"), id="done"),
    ],
)
def test_after_a_deletion_the_name_is_another_pipelines(
    server: ScriptedServer, client: Client, told: Callable[[Client], Operation]
) -> None:
    server.answer("POST", RECORDS, RECEIPT)
    server.answer("GET", "/v1/operations/op", done())
    server.answer("DELETE", "/v1/pipelines/orders", ACCEPTED)
    server.answer("GET", "/v1/operations/gone", done("delete", generation=None))
    client.operation("op")

    told(client)
    client.send("orders", "orders", ROWS)

    assert if_match(server) == [None]


def test_a_change_that_is_not_done_is_no_reason_to_wait(
    server: ScriptedServer, client: Client
) -> None:
    failed = done(state="failed")
    server.answer("POST", RECORDS, RECEIPT)
    server.answer("GET", "/v1/operations/op", failed)

    client.operation("op")
    client.send("orders", "orders", ROWS)

    assert if_match(server) == [None]


def test_the_command_demands_the_generation_that_apply_told(
    server: ScriptedServer, command: Command
) -> None:
    server.answer("POST", RECORDS, RECEIPT)
    server.answer("POST", "/v1/tokens", ISSUED)
    server.answer("POST", "/v1/pipelines/orders/start", ACCEPTED)
    server.answer("GET", "/v1/operations/op", done("start"))

    assert command("start", "orders").stdout == "orders start done generation 3\n"
    sent = command("send", "orders", "orders", '{"id": 1}', "--generation", "3")
    made = command("token", "for", "orders", "orders", "--generation", "3")

    assert (sent.exit_code, made.exit_code) == (0, 0), sent.output + made.output
    assert if_match(server) + if_match(server, "/v1/tokens") == ['"3"', '"3"']
