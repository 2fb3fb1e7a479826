"""`waybill dlq`: which records died, why, and sending them again."""

import json
from typing import get_args

import pytest

from unit.waybill.conftest import Command
from waybill.cli.dlq import Reason
from waybill.testing import Response, ScriptedServer, problem
from waybill_shared.contract.words import DeadReason

PATH = "/v1/pipelines/orders/dead-letters"
LETTER = {
    "id": "L1",
    "topic": "orders.in.dlq",
    "partition": 0,
    "offset": 7,
    "at": "2026-11-25T09:00:00.000Z",
    "stage": "load",
    "sink": None,
    "reason": "malformed",
    "rule": None,
    "message": "amount: 'x' is no INT",
    "source": {"topic": "orders.in", "partition": 2, "offset": 41},
    "key": None,
    "value": "{",
}
OTHER = {**LETTER, "id": "L2", "reason": "refused", "sink": "lake"}


def page(*letters: object, cursor: str | None = None) -> Response:
    return Response(json={"items": list(letters), "next_cursor": cursor})


def test_dead_letters_are_told_page_by_page(server: ScriptedServer, command: Command) -> None:
    server.answer("GET", PATH, page(LETTER, cursor="c"), page(OTHER))
    lines = command("dlq", "list", "orders").stdout.splitlines()
    assert lines[0].split() == ["ID", "AT", "STAGE", "SINK", "REASON", "FROM", "MESSAGE"]
    assert [line.split()[0] for line in lines[1:]] == ["L1", "L2"]
    assert "orders.in[2]@41" in lines[1]


def test_they_are_told_as_json_too(server: ScriptedServer, command: Command) -> None:
    server.answer("GET", PATH, page(LETTER))
    told = command("dlq", "list", "orders", "--reason", "malformed", "-o", "json").stdout
    assert json.loads(told) == {"items": [LETTER]}


def test_no_more_than_wanted_are_told(server: ScriptedServer, command: Command) -> None:
    server.answer("GET", PATH, page(LETTER, OTHER, cursor="c"))
    assert len(command("dlq", "list", "orders", "-n", "1").stdout.splitlines()) == 2


def test_of_more_than_are_shown_the_number_is_said(
    server: ScriptedServer, command: Command
) -> None:
    server.answer("GET", PATH, *[page(LETTER, OTHER)] * 3)
    counts: dict[str, object] = {"reason": None, "inputs": [], "sinks": [], "dead": 4}
    server.answer("GET", "/v1/flow", Response(json={"items": [{"name": "orders", **counts}]}))
    all_of_it = command("dlq", "list", "orders", "-n", "1")
    assert "the newest 1, of about 4 in all: -n shows more" in all_of_it.stderr
    some = command("dlq", "list", "orders", "-n", "1", "--reason", "malformed")
    assert "the newest 1: -n shows more" in some.stderr
    assert "newest" not in command("dlq", "list", "orders", "-n", "2").stderr


def test_one_is_shown_whole(server: ScriptedServer, command: Command) -> None:
    server.answer("GET", f"{PATH}/L1", Response(json=LETTER))
    shown = command("dlq", "show", "orders", "L1").stdout
    assert "source.offset" in shown
    assert "amount: 'x' is no INT" in shown


def test_one_that_is_gone_is_an_error(server: ScriptedServer, command: Command) -> None:
    server.answer("GET", f"{PATH}/L1", problem(410, "retention removed it"))
    done = command("dlq", "show", "orders", "L1")
    assert done.exit_code == 1
    assert "retention removed it" in done.stderr


def test_a_replay_prints_its_token(server: ScriptedServer, command: Command) -> None:
    done = Response(
        json={
            "token": "wb1.x",
            "replayed": 1,
            "already": 1,
            "sinks": ["load/lake"],
            "request_id": "r",
        }
    )
    server.answer("POST", f"{PATH}/replay", done)
    told = command("dlq", "replay", "orders", "L1", "L2")
    assert told.stdout.strip() == "wb1.x"
    assert "1 letter replayed, 1 were before, into load/lake" in told.stderr


def test_all_are_replayed_only_when_that_was_said(server: ScriptedServer, command: Command) -> None:
    server.answer("GET", PATH, page(LETTER, OTHER), page(LETTER, OTHER))
    refused = command("dlq", "replay", "orders", "--all")
    assert refused.exit_code == 2
    assert "this replays 2 dead letters, and there is no terminal to ask on" in refused.stderr
    done = Response(
        json={
            "token": "wb1.x",
            "replayed": 2,
            "already": 0,
            "sinks": ["load/lake"],
            "request_id": "r",
        }
    )
    server.answer("POST", f"{PATH}/replay", done)
    told = command("dlq", "replay", "orders", "--all", "--yes", "-o", "json").stdout
    assert json.loads(told) == {
        "token": "wb1.x", "replayed": 2, "already": 0, "sinks": ["load/lake"], "left_out": []
    }  # fmt: skip


@pytest.mark.usefixtures("on_terminal")
def test_who_says_no_sends_none(server: ScriptedServer, command: Command) -> None:
    server.answer("GET", PATH, page(LETTER, OTHER))
    refused = command("dlq", "replay", "orders", "--all", stdin="n\n")
    assert "This replays 2 dead letters. Replay them?" in refused.stderr
    assert refused.exit_code == 1
    assert not server.asked("POST", f"{PATH}/replay")


REFUSED = problem(
    409,
    "L1: orders.inner is no input",
    rejected=[{"index": 0, "reason": "orders.inner is no input"}],
)
SENT = Response(
    json={"token": "wb1.x", "replayed": 1, "already": 0, "sinks": ["load/lake"], "request_id": "r"}
)


def test_all_leaves_out_what_cannot_be_sent_and_says_so(
    server: ScriptedServer, command: Command
) -> None:
    server.answer("GET", PATH, page(LETTER, OTHER))
    server.answer("POST", f"{PATH}/replay", REFUSED, SENT)
    told = command("dlq", "replay", "orders", "--all", "--yes")
    assert (told.exit_code, told.stdout.strip()) == (0, "wb1.x")
    assert "left out: L1: orders.inner is no input" in told.stderr
    assert [json.loads(r.body)["ids"] for r in server.requests if r.body] == [["L1", "L2"], ["L2"]]


def test_an_id_that_cannot_be_sent_is_an_error(server: ScriptedServer, command: Command) -> None:
    server.answer("POST", f"{PATH}/replay", REFUSED)
    told = command("dlq", "replay", "orders", "L1", "L2")
    assert (told.exit_code, told.stdout) == (1, "")
    assert "orders.inner is no input" in told.stderr
    assert "nothing to replay" not in told.stderr


AGES = problem(
    409,
    "an old row may take the place of a newer one in newest",
    type="urn:waybill:problem:replay_not_confirmed",
)


def test_where_an_old_row_may_replace_a_newer_one_it_asks_first(
    server: ScriptedServer, command: Command
) -> None:
    server.answer("POST", f"{PATH}/replay", AGES, SENT)
    refused = command("dlq", "replay", "orders", "L1")
    assert refused.exit_code == 2
    assert "in newest, and there is no terminal to ask on" in refused.stderr
    assert command("dlq", "replay", "orders", "L1", "--yes").stdout.strip() == "wb1.x"
    assert [json.loads(r.body).get("yes") for r in server.requests if r.body] == [None, True]


@pytest.mark.usefixtures("on_terminal")
def test_who_says_yes_gets_it_all_the_same(server: ScriptedServer, command: Command) -> None:
    server.answer("POST", f"{PATH}/replay", AGES, SENT)
    told = command("dlq", "replay", "orders", "L1", stdin="y\n")
    assert told.stdout.split()[-1] == "wb1.x"
    assert [json.loads(r.body).get("yes") for r in server.requests if r.body] == [None, True]


def test_what_is_too_much_at_once_is_sent_in_parts(
    server: ScriptedServer, command: Command
) -> None:
    server.answer("POST", f"{PATH}/replay", problem(413, "too much"), SENT, SENT)
    server.answer("POST", "/v1/tokens", Response(json={"token": "wb1.both"}))
    told = command("dlq", "replay", "orders", "L1", "L2")
    assert told.stdout.strip() == "wb1.both"
    assert "2 letters replayed" in told.stderr


def test_what_was_sent_before_a_fault_has_its_token(
    server: ScriptedServer, command: Command
) -> None:
    server.answer("POST", f"{PATH}/replay", problem(413, "too much"), SENT, REFUSED)
    told = command("dlq", "replay", "orders", "L1", "L2")
    assert (told.exit_code, told.stdout.strip()) == (1, "wb1.x")


def test_what_to_replay_must_be_said(command: Command) -> None:
    assert command("dlq", "replay", "orders").exit_code == 2
    assert command("dlq", "replay", "orders", "L1", "--all").exit_code == 2


def test_help_names_every_reason(command: Command) -> None:
    shown = command("dlq", "list", "--help").stdout
    assert not [reason for reason in DeadReason if reason not in shown]


@pytest.mark.parametrize(
    ("option", "value", "named"),
    [
        ("--reason", "bogus", "malformed"),
        ("--since", "yesterday", "2026-11-25T09:00:00Z"),
        ("--since", "2026-11-25", "zone"),
    ],
)
def test_an_option_that_cannot_be_is_refused_with_what_can(
    command: Command, option: str, value: str, named: str
) -> None:
    refused = command("dlq", "list", "orders", option, value)
    assert refused.exit_code == 2
    assert option in refused.stderr
    assert named in refused.stderr


def test_reasons_of_the_command_are_those_of_dead_letters() -> None:
    assert set(get_args(Reason)) == set(DeadReason)
