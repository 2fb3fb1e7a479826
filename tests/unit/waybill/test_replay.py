"""Dead letters that are sent again, from Python."""

import asyncio
import json

import pytest

from waybill import AsyncClient, Client, Conflict, Expired, NotFound, Rejected, Unusable
from waybill.errors import ProblemError
from waybill.testing import Response, ScriptedServer, problem

PATH = "/v1/pipelines/orders/dead-letters/replay"
ANSWER = {
    "token": "wb1.abc",
    "replayed": 1,
    "already": 2,
    "sinks": ["load/lake"],
    "request_id": "r-1",
}


def test_replay_asks_for_the_ids_and_holds_the_token(
    server: ScriptedServer, client: Client
) -> None:
    server.answer("POST", PATH, Response(json=ANSWER))
    done = client.replay("orders", (each for each in ("a:0:1:2", "a:0:2:9")))
    assert json.loads(server.requests[0].body) == {"ids": ["a:0:1:2", "a:0:2:9"], "again": False}
    assert (done.token, done.replayed, done.already) == ("wb1.abc", 1, 2)
    assert (done.sinks, done.request_id, done.raw) == (("load/lake",), "r-1", ANSWER)
    client.replay("orders", ["a:0:1:2"], again=True, yes=True, generation=3)
    body = json.loads(server.requests[1].body)
    assert (body["again"], body["yes"]) == (True, True)
    assert server.requests[1].headers["if-match"] == '"3"'


def test_the_twin_asks_the_same(server: ScriptedServer) -> None:
    server.answer("POST", PATH, Response(json=ANSWER))

    async def ask() -> None:
        async with AsyncClient(server.url) as client:
            done = await client.replay("orders", ["a:0:1:2"])
            assert (done.token, done.replayed, done.already) == ("wb1.abc", 1, 2)

    asyncio.run(ask())


def test_replay_of_nothing_asks_nothing(server: ScriptedServer, client: Client) -> None:
    with pytest.raises(Unusable, match="no dead letters to replay"):
        client.replay("orders", [])
    with pytest.raises(TypeError):
        client.replay("orders", "a:0:1:2")
    assert server.requests == []


@pytest.mark.parametrize(
    ("status", "kind"), [(404, NotFound), (409, Conflict), (410, Expired)], ids=str
)
def test_refusal_names_each_id_that_cannot_be_sent(
    server: ScriptedServer, client: Client, status: int, kind: type[ProblemError]
) -> None:
    rejected = [{"index": 1, "problem": "dead_letter_gone", "reason": "it is gone"}]
    server.answer("POST", PATH, problem(status, "dead letter x: it is gone", rejected=rejected))
    with pytest.raises(kind) as raised:
        client.replay("orders", ["a:0:1:2", "x"])
    assert raised.value.rejected == (Rejected(index=1, reason="it is gone"),)


def test_replay_is_not_repeated_by_itself(server: ScriptedServer, client: Client) -> None:
    server.answer("POST", PATH, problem(503, "another request", type="urn:x:not_available_now"))
    with pytest.raises(ProblemError):
        client.replay("orders", ["a:0:1:2"])
    assert len(server.requests) == 1


def test_an_edit_has_text_as_it_is_and_other_bytes_in_base64(
    server: ScriptedServer, client: Client
) -> None:
    server.answer("POST", PATH, Response(json=ANSWER))
    client.replay("orders", ["a:0:1:2"], edited={"value": b'{"id": 7}', "key": None})
    client.replay("orders", ["a:0:1:2"], edited={"key": b"\xff"})
    edits = [json.loads(each.body)["edited"] for each in server.requests]
    assert edits == [{"value": '{"id": 7}', "key": None}, {"key_base64": "/w=="}]
    with pytest.raises(Unusable, match="a single dead letter"):
        client.replay("orders", ["a:0:1:2", "a:0:1:3"], edited={"key": "k"})
