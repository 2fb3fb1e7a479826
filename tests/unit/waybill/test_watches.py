"""Watches and events in the SDK and on the command line."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import pytest
from typer.testing import Result

from unit.waybill.conftest import Command
from waybill import AsyncClient, Client, Event, NotFound, Unusable
from waybill.testing import ManualClock, Response, ScriptedServer, problem

WATCH: dict[str, Any] = {
    "id": "w1",
    "state": "open",
    "labels": {"batch": "7"},
    "created_at": "2026-11-26T21:00:00.000Z",
    "expires_at": "2026-12-26T21:00:00.000Z",
    "reported_at": None,
    "event_id": None,
    "ended_as": None,
}
TOLD = {**WATCH, "id": "w0", "state": "reported", "ended_as": "complete", "labels": {}}


def event(number: int) -> dict[str, object]:
    return {
        "specversion": "1.0",
        "id": f"w{number}.final",
        "source": "/waybill/waybill",
        "type": "waybill.token.final",
        "subject": f"w{number}",
        "time": "2026-11-26T21:00:01.250Z",
        "pipeline": "orders",
        "stage": None,
        "data": {"ended_as": "complete", "outcome": {"outcome": "complete"}, "labels": {}},
    }


def stream(*parts: str) -> Response:
    return Response(content="".join(parts).encode(), content_type="text/event-stream")


def sent(number: int) -> str:
    return f"event: waybill.token.final\nid: 0-{number}\ndata: {json.dumps(event(number))}\n\n"


@pytest.fixture
def client(server: ScriptedServer) -> Iterator[Client]:
    with Client(server.url, clock=ManualClock()) as client:
        yield client


def test_a_watch_is_begun_with_a_key_so_that_it_may_be_sent_again(
    server: ScriptedServer, client: Client
) -> None:
    server.answer(
        "POST", "/v1/watches", problem(503, "try again"), Response(status=201, json=WATCH)
    )
    watch = client.watch("wb1.abc", labels={"batch": "7"})
    assert (watch.id, watch.state, watch.labels) == ("w1", "open", {"batch": "7"})
    first, second = server.requests
    assert json.loads(first.body) == {"token": "wb1.abc", "labels": {"batch": "7"}}
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"]


def test_watches_come_page_by_page(server: ScriptedServer, client: Client) -> None:
    pages = ({"items": [WATCH], "next_cursor": "w1"}, {"items": [TOLD], "next_cursor": None})
    server.answer("GET", "/v1/watches", *(Response(json=page) for page in pages))
    assert [each.id for each in client.watches()] == ["w1", "w0"]
    assert server.requests[1].params["cursor"] == "w1"


def test_a_watch_that_there_is_not(server: ScriptedServer, client: Client) -> None:
    server.answer("GET", "/v1/watches/x%2Fy", problem(404, "no such watch"))
    with pytest.raises(NotFound):
        client.find_watch("x/y")


def ids_of(events: Iterator[Event]) -> list[str]:
    return [each.id for each in events]


PARTS = [
    stream("id: 0-0\n\n"),  # it breaks before the first event
    stream(sent(1), sent(2), "event: waybill.cut\nid: 0-5\ndata: {}\n\n"),
    problem(503, "status is away"),
    stream(sent(6), "data: {"),  # it breaks within an event
    stream(sent(7)),
]
POSITIONS = [None, "0-0", "0-5", "0-5", "0-6"]


def asked(server: ScriptedServer) -> list[str | None]:
    return [request.headers.get("last-event-id") for request in server.requests]


def test_events_go_on_behind_the_last_one_whatever_breaks(
    server: ScriptedServer, client: Client
) -> None:
    server.answer("GET", "/v1/events", *PARTS)
    found = ids_of(islice(client.events(types=["a", "b"], labels={"x": "y"}), 4))
    assert found == ["w1.final", "w2.final", "w6.final", "w7.final"]
    assert asked(server) == POSITIONS
    assert server.requests[0].headers["accept"] == "text/event-stream"


def test_the_async_client_does_so_too(server: ScriptedServer, monkeypatch: Any) -> None:  # noqa: ANN401
    monkeypatch.setattr("waybill.event_following.AGAIN_S", 0.0)
    server.answer("GET", "/v1/events", *PARTS)

    async def follow() -> list[str]:
        found: list[str] = []
        async with AsyncClient(server.url) as client:
            async for each in client.events():
                found.append(each.id)
                if len(found) == 4:
                    return found
        raise AssertionError("the stream has no end")

    assert asyncio.run(follow()) == ["w1.final", "w2.final", "w6.final", "w7.final"]
    assert asked(server) == POSITIONS


def test_an_event_has_the_outcome(server: ScriptedServer, client: Client) -> None:
    server.answer("GET", "/v1/events", stream(sent(1)))
    (found,) = islice(client.events(after="0-0"), 1)
    assert found.outcome is not None
    assert (found.outcome.kind, found.position, found.pipeline) == ("complete", "0-1", "orders")
    assert asked(server) == ["0-0"]


def run_json(result: Result) -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(result.stdout)
    return found


def test_the_command_begins_lists_and_ends_watches(
    server: ScriptedServer, command: Command
) -> None:
    server.answer("POST", "/v1/watches", Response(status=201, json=WATCH))
    server.answer(
        "GET", "/v1/watches", Response(json={"items": [WATCH, TOLD], "next_cursor": None})
    )
    server.answer("DELETE", "/v1/watches/w1", Response(json={**WATCH, "state": "closed"}))
    begun = command("watch", "wb1.abc", "--label", "batch=7", "--label", "x=a=b")
    assert (begun.exit_code, begun.stdout) == (0, "w1 open\n")
    assert json.loads(server.requests[-1].body)["labels"] == {"batch": "7", "x": "a=b"}
    listed = command("watches").stdout.splitlines()
    assert listed[1].split() == ["w1", "open", "2026-11-26T21:00:00+00:00", "batch=7"]
    assert listed[2].split()[:3] == ["w0", "reported:", "complete"]
    assert run_json(command("watches", "-o", "json"))["items"] == [WATCH, TOLD]
    assert command("unwatch", "w1").stdout == "w1 closed\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("watch", "wb1.a", "--label", "batch"), "is no NAME=VALUE"),
        (("watch", " "), "is empty"),
        (("events",), "name a pipeline, or add --follow"),
        (("events", "orders", "--type", "x"), "do not go with a pipeline"),
    ],
)
def test_what_is_used_wrongly_is_told(
    command: Command, arguments: tuple[str, ...], said: str
) -> None:
    result = command(*arguments)
    assert (result.exit_code, said in result.stderr) == (2, True)


HOOK = {
    "url": "https://hooks.example/",
    "secret": None,
    "state": "due",
    "attempts": 3,
    "next_attempt_at": "2026-11-26T21:00:20.000Z",
    "last_attempt_at": "2026-11-26T21:00:00.000Z",
    "last_error": "it answered 503",
}


def test_a_secret_is_made_here_so_that_the_request_may_be_sent_again(
    server: ScriptedServer, client: Client
) -> None:
    hook = {**HOOK, "state": None, "attempts": 0, "last_error": None}
    server.answer(
        "POST", "/v1/watches", *[Response(status=201, json={**WATCH, "webhook": hook})] * 2
    )
    made = client.watch("wb1.abc", webhook="https://hooks.example/?a=b")
    given = client.watch("wb1.abc", webhook="https://hooks.example/", secret="whsec_x")
    sent = [json.loads(each.body)["webhook"] for each in server.requests]
    assert sent[0] == {"url": "https://hooks.example/?a=b", "secret": made.secret}
    assert sent[1] == {"url": "https://hooks.example/", "secret": "whsec_x"}
    assert made.secret is not None
    assert made.secret not in repr(made)
    assert given.secret is None
    assert made.webhook is not None
    assert (made.webhook.url, made.webhook.state) == ("https://hooks.example/", None)
    with pytest.raises(Unusable, match="there is none"):
        client.watch("wb1.abc", secret="whsec_x")


def test_what_was_told_is_sent_again(server: ScriptedServer, client: Client) -> None:
    again = Response(status=202, json={**TOLD, "webhook": HOOK})
    server.answer("POST", "/v1/watches/w0/redeliver", problem(503, "try again"), again)
    found = client.redeliver("w0")
    assert found.webhook is not None
    assert (found.webhook.state, found.webhook.attempts) == ("due", 3)
    first, second = server.requests
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"]


def test_the_commands_show_how_far_a_webhook_is(server: ScriptedServer, command: Command) -> None:
    watch = {**WATCH, "webhook": HOOK}
    server.answer("POST", "/v1/watches", *[Response(status=201, json=watch)] * 4)
    server.answer("GET", "/v1/watches", Response(json={"items": [watch], "next_cursor": None}))
    server.answer("POST", "/v1/watches/w1/redeliver", Response(status=202, json=watch))
    begun = command("watch", "wb1.abc", "--webhook", "https://hooks.example/").stdout
    secret = json.loads(server.requests[-1].body)["webhook"]["secret"]
    assert begun == f"w1 open\nsecret {secret}\n"
    command("watch", "wb1.abc", "--sink", "lake", "--sink", "copy")
    assert json.loads(server.requests[-1].body)["view"] == {"sinks": ["lake", "copy"]}
    given = ("--webhook", "https://hooks.example/", "--webhook-secret", "whsec_x")
    assert command("watch", "wb1.abc", *given).stdout == "w1 open\n"
    shown = run_json(
        command("watch", "wb1.abc", "--webhook", "https://hooks.example/", "-o", "json")
    )
    assert shown["secret"] == json.loads(server.requests[-1].body)["webhook"]["secret"]
    listed = command("watches").stdout.splitlines()[1]
    assert listed.endswith("https://hooks.example/ (3 attempts: it answered 503)")
    assert command("redeliver", "w1").stdout == "w1 open\n"
