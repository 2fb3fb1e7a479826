"""A token of the SDK: plain text that can also be asked about."""

import copy
import json
import pickle

import pytest

from waybill import (
    Client,
    Expired,
    NotFound,
    OutcomeKind,
    Rejected,
    StillInProgress,
    Token,
    Unusable,
)
from waybill.questions import PATH_TOKEN_CHARACTERS_MAX
from waybill.testing import ManualClock, Response, ScriptedServer, problem

TOKEN_PATH = "/v1/tokens/wb1.abc"
QUERY = "/v1/tokens/query"
RECORDS_PATH = "/v1/pipelines/orders/inputs/orders/records"
LONG = "wb1." + "x" * PATH_TOKEN_CHARACTERS_MAX
STARTED, DONE = {"outcome": "in_progress"}, {"outcome": "complete"}


def answer(*outcomes: object) -> Response:
    return Response(json={"outcomes": list(outcomes)})


def test_a_receipt_holds_a_token_that_waits(server: ScriptedServer, client: Client) -> None:
    server.answer("POST", RECORDS_PATH, Response(json={"token": "wb1.abc", "accepted": 1}))
    server.answer("GET", TOKEN_PATH, Response(json=STARTED), Response(json=DONE))
    token = client.send("orders", "orders", [{}]).token
    assert token.outcome().kind is OutcomeKind.IN_PROGRESS
    assert token.wait(timeout_s=9).complete


def test_a_token_is_its_text(client: Client) -> None:
    token = client.token("wb1.abc")
    assert token == "wb1.abc"
    assert type(str(token)) is str
    assert (f"{token}", json.dumps([token]), repr(token)) == ("wb1.abc", '["wb1.abc"]', "'wb1.abc'")
    assert hash(token) == hash("wb1.abc")
    for same in (copy.deepcopy(token), pickle.loads(pickle.dumps(token))):
        assert same == token
        assert not isinstance(same, Token)


def test_what_holds_a_token_is_asked_like_it(server: ScriptedServer, client: Client) -> None:
    server.answer("POST", RECORDS_PATH, Response(json={"token": "wb1.abc", "accepted": 1}))
    server.answer("GET", TOKEN_PATH, Response(json=DONE))
    receipt = client.send("orders", "orders", [{}])
    for asked in (receipt, receipt.token, "wb1.abc", " wb1.abc\n"):
        assert client.wait(asked).complete
    with pytest.raises(Unusable, match="the token is empty"):
        client.wait(" ")


def test_tokens_become_one(server: ScriptedServer, client: Client) -> None:
    server.answer("POST", "/v1/tokens", Response(json={"token": "wb1.m", "pipeline": None}))
    first, second = client.token("wb1.a"), client.token("wb1.b")
    assert client.merge([first, "wb1.b\n"]) == first.merge(second) == "wb1.m"
    bodies = [json.loads(request.body) for request in server.requests]
    assert bodies == [{"merge": ["wb1.a", "wb1.b"]}] * 2


def test_a_merge_needs_tokens(client: Client) -> None:
    with pytest.raises(Unusable, match="no tokens to merge"):
        client.merge([])
    with pytest.raises(TypeError, match="put a single token into a list"):
        client.merge("wb1.abc")


@pytest.mark.parametrize(("status", "kind"), [(404, NotFound), (410, Expired)])
def test_a_refused_merge_names_the_places(
    server: ScriptedServer, client: Client, status: int, kind: type[NotFound | Expired]
) -> None:
    rejected = [{"index": 1, "reason": "no such token"}]
    server.answer("POST", "/v1/tokens", problem(status, "merge[1]", rejected=rejected))
    with pytest.raises(kind) as refused:
        client.merge(["wb1.a", "wb1.forged"])
    assert refused.value.rejected == (Rejected(index=1, reason="no such token"),)


def test_a_token_too_long_for_an_address_goes_into_a_body(
    server: ScriptedServer, client: Client
) -> None:
    server.answer("POST", QUERY, answer(STARTED), answer(STARTED), answer(DONE))
    assert client.outcome(LONG).kind is OutcomeKind.IN_PROGRESS
    assert client.wait(LONG, timeout_s=100).complete
    assert [request.params for request in server.requests] == [{}, {"wait": "30"}, {"wait": "30"}]
    assert json.loads(server.requests[0].body) == {"tokens": [LONG]}


def test_a_long_token_that_is_none_is_not_found(server: ScriptedServer, client: Client) -> None:
    error = {"type": "urn:waybill:problem:token_not_found", "title": "t", "status": 404}
    server.answer("POST", QUERY, answer({"error": {**error, "detail": "no such token"}}))
    with pytest.raises(NotFound, match="no such token"):
        client.outcome(LONG)


def test_a_long_token_is_followed_by_asking_again(
    server: ScriptedServer, client: Client, clock: ManualClock
) -> None:
    half = {"outcome": "in_progress", "accepted": 5}
    server.answer("POST", QUERY, *map(answer, (STARTED, STARTED, half, DONE)))
    seen = [(outcome.kind.value, outcome.accepted) for outcome in client.follow(LONG)]
    assert seen == [("in_progress", None), ("in_progress", 5), ("complete", None)]
    assert clock.slept == [1.0]


def test_following_a_long_token_ends_at_its_deadline(
    server: ScriptedServer, client: Client
) -> None:
    server.answer("POST", QUERY, answer(STARTED))
    with pytest.raises(StillInProgress):
        list(client.follow(LONG, timeout_s=3))


def test_an_outcome_of_several_pipelines_has_their_parts(
    server: ScriptedServer, client: Client
) -> None:
    def part(name: str, snapshot: int) -> dict[str, object]:
        version = {"iceberg_snapshot_id": snapshot}
        sink = {"name": "lake", "state": "committed", "version": version}
        stage = {"stage": "load", "state": "done", "sinks": [sink]}
        return {"pipeline": name, "outcome": "complete", "stages": [stage], "lost": []}

    parts = [part("orders", 1), part("clicks", 2)]
    server.answer("GET", TOKEN_PATH, Response(json={**DONE, "pipeline": None, "parts": parts}))
    outcome = client.outcome("wb1.abc")
    assert [(each.pipeline, each.kind) for each in outcome.parts] == [
        ("orders", OutcomeKind.COMPLETE),
        ("clicks", OutcomeKind.COMPLETE),
    ]
    assert outcome.iceberg_snapshots == {"orders.lake": 1, "clicks.lake": 2}
    assert outcome.parts[1].iceberg_snapshots == {"lake": 2}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "the token is empty"),
        (" \n", "the token is empty"),
        ("orders", "the token begins with 'orders'"),
        ("wb1.", "the token begins with 'wb1.'"),
        ("wb1.abc wb1.def", "the token has ' ' as character 8"),
        ("wb1.abc…", "the token has '…' as character 8"),
        (None, "the token is of type NoneType"),
        (b"wb1.abc", "the token is of type bytes"),
    ],
)
def test_what_cannot_be_a_token_is_refused_without_a_request(
    server: ScriptedServer, client: Client, text: str, told: str
) -> None:
    for ask in (client.token, client.outcome, client.wait, client.follow):
        with pytest.raises(Unusable, match=f"{told}: a token is wb1. and"):
            ask(text)
    with pytest.raises(Unusable, match=r"tokens\[1\]"):
        client.merge(["wb1.abc", text])
    assert server.requests == []


def test_a_stored_token_may_have_space_around_it_and_be_of_a_later_version(client: Client) -> None:
    assert client.token(" wb2.A-_9\n") == "wb2.A-_9"
