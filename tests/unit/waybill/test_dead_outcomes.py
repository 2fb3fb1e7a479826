"""What an outcome says of records that died, as a value, as a line, and on the command line."""

import json

import pytest

from unit.waybill.conftest import Command
from waybill import DeadLetter, Dropped, Outcome, RecordLocation, UnexpectedAnswer
from waybill.cli.arrival import DEAD_LINES_MAX
from waybill.fields import Fields
from waybill.testing import Response, ScriptedServer, event_stream

JsonObject = dict[str, object]
TOKEN_PATH = "/v1/tokens/wb1.abc"
EXACT: JsonObject = {
    "topic": "orders.in",
    "partition": 0,
    "offset": 41,
    "stage": "enrich",
    "sink": None,
    "reason": "violated",
    "rule": "positive",
    "message": "amount > 0\nis not true",
    "dead_letter": {"topic": "orders.in.dlq", "partition": 0, "offset": 3},
    "exact": True,
    "replayed_as": {"topic": "orders.in", "partition": 0, "offset": 90},
}
RANGE: JsonObject = {
    "topic": "orders.in",
    "partition": 1,
    "start": 12,
    "end": 20,
    "stage": "load",
    "sink": "lake",
    "up_to": 2,
    "reason": "refused",
    "rule": None,
    "message": "too long",
    "exact": False,
}
DROPPED: JsonObject = {"rule": "orders.known", "stage": "enrich", "up_to": 1}


def answer(*dead: JsonObject, count: int | None = None, **members: object) -> JsonObject:
    return {
        "outcome": "dead_lettered",
        "pipeline": "orders",
        "accepted": 9,
        "stages": [],
        "dead": list(dead),
        "dead_count": len(dead) if count is None else count,
        "dropped": [],
        **members,
    }


def read(told: JsonObject) -> Outcome:
    return Outcome.read(Fields(told, "the outcome"))


def test_what_died_is_typed() -> None:
    outcome = read(answer(EXACT, RANGE, count=3, dropped=[DROPPED]))
    exact, vague = outcome.dead
    assert exact == DeadLetter(
        topic="orders.in",
        partition=0,
        start=41,
        end=42,
        stage="enrich",
        sink=None,
        reason="violated",
        rule="positive",
        message="amount > 0\nis not true",
        dead_letter=RecordLocation(topic="orders.in.dlq", partition=0, offset=3),
        replayed_as=RecordLocation(topic="orders.in", partition=0, offset=90),
    )
    assert (exact.offset, exact.up_to, exact.exact) == (41, 1, True)
    assert (vague.start, vague.end, vague.up_to, vague.exact) == (12, 20, 2, False)
    assert (vague.dead_letter, vague.sink) == (None, "lake")
    assert outcome.dropped == (Dropped(rule="orders.known", stage="enrich", up_to=1),)
    assert (outcome.dead_count, outcome.dead_truncated, outcome.final) == (3, False, True)


def test_of_several_pipelines_each_says_what_died() -> None:
    part = {"pipeline": "orders", "outcome": "dead_lettered", "dead": [EXACT], "dead_count": 1}
    (told,) = read(answer(EXACT, parts=[part])).parts
    assert (told.dead[0].offset, told.dead_count, told.dropped) == (41, 1, ())


@pytest.mark.parametrize("lacking", ["offset", "stage", "reason"])
def test_what_is_needed_of_a_dead_letter_is_not_guessed(lacking: str) -> None:
    entry = {name: value for name, value in EXACT.items() if name != lacking}
    with pytest.raises(UnexpectedAnswer, match=rf"dead\[0\]\.{lacking} should be"):
        read(answer(entry))


@pytest.mark.parametrize(
    ("told", "line"),
    [
        (answer(EXACT), "dead_lettered: 1 record of orders.in (violated)"),
        (
            answer(EXACT, {**EXACT, "sink": "lake"}, {**EXACT, "partition": 1}),
            "dead_lettered: 2 records of orders.in (violated)",
        ),
        (
            answer(EXACT, RANGE),
            (
                "dead_lettered: 1 record of orders.in (violated), up to 2 records of orders.in"
                " (refused)"
            ),
        ),
        (answer(EXACT, count=5000, dead_truncated=True), "dead_lettered: up to 5000 records"),
    ],
)
def test_as_text_it_is_one_line(told: JsonObject, line: str) -> None:
    assert str(read(told)) == line


def test_the_command_says_of_each_where_why_and_where_it_lies(
    server: ScriptedServer, command: Command
) -> None:
    server.answer("GET", TOKEN_PATH, Response(json=answer(EXACT, RANGE, dropped=[DROPPED])))
    result = command("token", "show", "wb1.abc")
    assert (result.exit_code, result.stdout.splitlines()) == (
        3,
        [
            "dead_lettered orders 9 records, up to 2 dead",
            (
                "  dead  orders.in[0]@41                 enrich     violated positive"
                "  orders.in.dlq[0]@3  amount > 0 is not true"
            ),
            (
                "  dead  orders.in[1] 12 to 19, up to 2  load.lake  refused          "
                "                      too long"
            ),
            "  dropped up to 1 record by orders.known in enrich",
        ],
    )


def test_of_many_the_command_tells_some(server: ScriptedServer, command: Command) -> None:
    many = [{**EXACT, "offset": n} for n in range(DEAD_LINES_MAX + 5)]
    server.answer("GET", TOKEN_PATH, event_stream(answer(*many)))
    result = command("token", "wait", "wb1.abc")
    lines = result.stdout.splitlines()
    assert (result.exit_code, len(lines)) == (3, DEAD_LINES_MAX + 2)
    assert lines[-1] == (
        "  dead and 5 more; in all at most 15 records: -o json, or `waybill dlq list orders`"
    )
    truncated = answer(EXACT, count=2000, dead_truncated=True, pipeline=None)
    server.answer("GET", "/v1/tokens/wb1.cut", Response(json=truncated))
    assert command("token", "show", "wb1.cut").stdout.splitlines()[-1] == (
        "  dead and more; in all at most 2000 records: -o json, or `waybill dlq list PIPELINE`"
    )


def test_as_json_all_of_it_passes(server: ScriptedServer, command: Command) -> None:
    told = answer(EXACT, RANGE, dropped=[DROPPED])
    server.answer("GET", TOKEN_PATH, Response(json=told))
    result = command("token", "show", "wb1.abc", "-o", "json")
    assert (result.exit_code, json.loads(result.stdout)) == (3, told)


def test_sending_and_waiting_tells_what_died(server: ScriptedServer, command: Command) -> None:
    receipt = {"token": "wb1.abc", "accepted": 1, "rejected": [], "request_id": "r"}
    path = "/v1/pipelines/orders/inputs/orders/records"
    server.answer("POST", path, Response(json=receipt))
    server.answer("GET", TOKEN_PATH, event_stream(answer(EXACT)))
    result = command("send", "orders", "orders", "{}", "--wait", "30")
    assert result.exit_code == 3
    assert "orders.in[0]@41" in result.stdout
