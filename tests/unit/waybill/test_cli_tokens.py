"""`waybill token`: exit codes, progress, what is data and what is talk."""

import json

import pytest

from unit.waybill.conftest import Command
from waybill.testing import Response, ScriptedServer, event_stream, problem

TOKEN_PATH = "/v1/tokens/wb1.abc"
SNAPSHOT = 6150272777574668285


def make_outcome(kind: str, *, load: str = "committed", **more: object) -> dict[str, object]:
    version = {"iceberg_snapshot_id": SNAPSHOT} if load == "committed" else None
    lake = {"name": "lake", "state": load, "behind": 2, "version": version}
    topic = {"name": "enriched_topic", "state": "committed", "batch_rows": 3}
    return {
        "outcome": kind,
        "pipeline": "orders",
        "accepted": 3,
        "stages": [
            {"stage": "enrich", "state": "done", "batch": 41, "sinks": [topic]},
            {"stage": "load", "state": "done", "batch": 12, "sinks": [lake]},
        ],
        **more,
    }


COMPLETE = make_outcome("complete")
WAITING = make_outcome("in_progress", load="waiting")


@pytest.mark.parametrize(
    ("kind", "code"),
    [("complete", 0), ("dead_lettered", 3), ("lost", 3), ("in_progress", 4), ("unknown", 5)],
)
def test_show_ends_with_the_code_of_the_outcome(
    server: ScriptedServer, command: Command, kind: str, code: int
) -> None:
    status = 503 if kind == "unknown" else 200
    server.answer("GET", TOKEN_PATH, Response(status=status, json={"outcome": kind}))
    result = command("token", "show", "wb1.abc")
    assert result.exit_code == code
    assert result.stdout.startswith(kind)


def test_show_of_a_forged_token_is_an_error(server: ScriptedServer, command: Command) -> None:
    server.answer("GET", TOKEN_PATH, problem(404, "no such token", hint="is it cut off?"))
    result = command("token", "show", "wb1.abc")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr == "error: no such token\nhint: is it cut off?\n"


def test_show_as_json_is_the_answer_itself(server: ScriptedServer, command: Command) -> None:
    server.answer("GET", TOKEN_PATH, Response(json=COMPLETE))
    result = command("token", "show", "wb1.abc", "-o", "json")
    assert json.loads(result.stdout) == COMPLETE
    assert result.stderr == ""


def test_show_names_each_sink_and_the_snapshot(server: ScriptedServer, command: Command) -> None:
    times = {"issued_at": "2026-11-21T09:00:00.120Z", "completed_at": "2026-11-21T09:00:00.634Z"}
    server.answer("GET", TOKEN_PATH, Response(json={**COMPLETE, **times}))
    assert command("token", "show", "wb1.abc").stdout.splitlines() == [
        "complete orders 3 records in 0.51 s",
        "  enrich  enriched_topic  committed  3 rows, batch 41",
        f"  load    lake            committed  2 to come, batch 12, iceberg snapshot {SNAPSHOT}",
    ]


def test_a_token_made_after_the_fact_took_no_negative_time(
    server: ScriptedServer, command: Command
) -> None:
    times = {"issued_at": "2026-11-21T09:00:09Z", "completed_at": "2026-11-21T09:00:00Z"}
    outcome = {"outcome": "complete", "pipeline": "orders", "accepted": 1, **times}
    server.answer("GET", TOKEN_PATH, Response(json=outcome))
    assert command("token", "show", "wb1.abc").stdout == "complete orders 1 record\n"


def test_show_says_why_it_is_unknown_and_what_a_sink_adds(
    server: ScriptedServer, command: Command
) -> None:
    unknown = {"outcome": "unknown", "reason": "tracker_silent"}
    lake = {"name": "lake", "state": "waiting", "detail": "removed"}
    stage = {"stage": "load", "state": "waiting", "sinks": [lake]}
    answers = (unknown, {"outcome": "in_progress", "stages": [stage]})
    server.answer("GET", TOKEN_PATH, *(Response(json=answer) for answer in answers))
    assert command("token", "show", "wb1.abc").stdout == "unknown tracker_silent\n"
    assert "lake  waiting  removed" in command("token", "show", "wb1.abc").stdout


def test_show_says_what_was_lost_and_where(server: ScriptedServer, command: Command) -> None:
    span = {"reason": "before_start", "topic": "orders.in", "partition": 0, "start": 0, "end": 5}
    server.answer("GET", TOKEN_PATH, Response(json={"outcome": "lost", "lost": [span]}))
    result = command("token", "show", "wb1.abc")
    assert "  lost before_start orders.in[0] 0 to 4" in result.stdout


def test_wait_shows_one_line_per_change_and_then_the_outcome(
    server: ScriptedServer, command: Command
) -> None:
    server.answer("GET", TOKEN_PATH, event_stream(WAITING, WAITING, COMPLETE))
    result = command("token", "wait", "wb1.abc")
    assert result.exit_code == 0
    assert result.stderr.splitlines() == [
        "enrich enriched_topic committed 3 rows, batch 41",
        "load lake waiting 2 to come, batch 12",
        f"load lake committed 2 to come, batch 12, iceberg snapshot {SNAPSHOT}",
    ]
    assert result.stdout.startswith("complete orders")
    assert f"iceberg snapshot {SNAPSHOT}" in result.stdout


def test_wait_says_what_blocks(server: ScriptedServer, command: Command) -> None:
    stage = {"stage": "load", "state": "blocked", "blocked_by": "stage_stopped", "sinks": []}
    blocked = {"outcome": "in_progress", "stages": [stage]}
    server.answer("GET", TOKEN_PATH, event_stream(blocked))
    result = command("token", "wait", "wb1.abc", "--timeout", "0")
    assert result.exit_code == 4
    assert "load blocked blocked by stage_stopped" in result.stderr
    assert result.stdout.startswith("in_progress")


@pytest.mark.parametrize(
    ("last", "code"),
    [
        (event_stream(make_outcome("lost")), 3),
        (event_stream(make_outcome("dead_lettered")), 3),
        (event_stream(WAITING), 4),
        (Response(status=503, json={"outcome": "unknown"}), 5),
    ],
)
def test_wait_ends_with_the_code_of_the_last_outcome(
    server: ScriptedServer, command: Command, last: Response, code: int
) -> None:
    server.answer("GET", TOKEN_PATH, last)
    assert command("token", "wait", "wb1.abc", "--timeout", "0").exit_code == code


def test_wait_as_json_prints_only_the_final_outcome(
    server: ScriptedServer, command: Command
) -> None:
    server.answer("GET", TOKEN_PATH, event_stream(WAITING, COMPLETE))
    result = command("token", "wait", "wb1.abc", "-o", "json")
    assert json.loads(result.stdout) == COMPLETE


MERGED_PATH = "/v1/tokens/wb1.m"


@pytest.mark.parametrize("arguments", [("wb1.a", "wb1.b"), ("-",)])
def test_several_tokens_are_merged_and_waited_for_as_one(
    server: ScriptedServer, command: Command, arguments: tuple[str, ...]
) -> None:
    server.answer("POST", "/v1/tokens", Response(json={"token": "wb1.m"}))
    server.answer("GET", MERGED_PATH, event_stream(COMPLETE))
    result = command("token", "wait", *arguments, stdin="wb1.a\nwb1.b\n")
    assert (result.exit_code, result.stdout.split()[0]) == (0, "complete")
    assert json.loads(server.requests[0].body) == {"merge": ["wb1.a", "wb1.b"]}


def test_show_tells_one_outcome_of_several_tokens(server: ScriptedServer, command: Command) -> None:
    server.answer("POST", "/v1/tokens", Response(json={"token": "wb1.m"}))
    server.answer("GET", MERGED_PATH, Response(json={"outcome": "lost"}))
    result = command("token", "show", "wb1.a", "wb1.b")
    assert (result.exit_code, result.stdout) == (3, "lost\n")


@pytest.mark.parametrize("arguments", [(), ("",), ("wb1.a", ""), ("-",)])
def test_wait_for_nothing_is_a_usage_error(
    server: ScriptedServer, command: Command, arguments: tuple[str, ...]
) -> None:
    assert command("token", "wait", *arguments, stdin="\n").exit_code == 2
    assert server.requests == []


def test_for_an_input_prints_only_the_token(server: ScriptedServer, command: Command) -> None:
    server.answer("POST", "/v1/tokens", Response(json={"token": "wb1.new", "pipeline": "orders"}))
    result = command("token", "for", "orders", "orders")
    assert (result.exit_code, result.stdout) == (0, "wb1.new\n")
    assert json.loads(server.requests[0].body) == {"pipeline": "orders", "input": "orders"}


def test_for_positions_sends_each(server: ScriptedServer, command: Command) -> None:
    server.answer("POST", "/v1/tokens", Response(json={"token": "wb1.new", "pipeline": "orders"}))
    result = command(
        *("token", "for", "orders", "-o", "json"),
        *("--position", "orders.in:Hb0c:0:41", "--position", "orders.in:Hb0c:1:7"),
    )
    assert json.loads(result.stdout)["token"] == "wb1.new"
    place = {"topic": "orders.in", "topic_id": "Hb0c"}
    assert json.loads(server.requests[0].body)["positions"] == [
        {**place, "partition": 0, "offset": 41},
        {**place, "partition": 1, "offset": 7},
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        ("orders",),
        ("orders", "orders", "--position", "orders.in:Hb0c:0:41"),
        ("orders", "--position", "orders.in:0:41"),
        ("orders", "--position", "orders.in:Hb0c:zero:41"),
        ("", "orders"),
    ],
)
def test_for_refuses_what_makes_no_sense(
    server: ScriptedServer, command: Command, arguments: tuple[str, ...]
) -> None:
    assert command("token", "for", *arguments).exit_code == 2
    assert server.requests == []


def test_stages_of_several_pipelines_are_told_apart(
    server: ScriptedServer, command: Command
) -> None:
    parts = [
        {"pipeline": name, "outcome": "complete", "stages": COMPLETE["stages"], "lost": []}
        for name in ("orders", "clicks")
    ]
    server.answer("GET", TOKEN_PATH, Response(json={"outcome": "complete", "parts": parts}))
    shown = command("token", "show", "wb1.abc").stdout
    assert "orders.load" in shown
    assert "clicks.load" in shown


def test_merge_prints_one_token(server: ScriptedServer, command: Command) -> None:
    server.answer("POST", "/v1/tokens", Response(json={"token": "wb1.m"}))
    result = command("token", "merge", "wb1.a", "wb1.b")
    assert (result.exit_code, result.stdout) == (0, "wb1.m\n")
    assert json.loads(server.requests[0].body) == {"merge": ["wb1.a", "wb1.b"]}


@pytest.mark.parametrize("arguments", [(), ("-",)])
def test_merge_reads_tokens_from_a_pipe(
    server: ScriptedServer, command: Command, arguments: tuple[str, ...]
) -> None:
    server.answer("POST", "/v1/tokens", Response(json={"token": "wb1.m"}))
    result = command("token", "merge", *arguments, "-o", "json", stdin="wb1.a\n\n wb1.b \n")
    assert json.loads(result.stdout) == {"token": "wb1.m", "merged": 2}
    assert json.loads(server.requests[0].body) == {"merge": ["wb1.a", "wb1.b"]}


def test_merge_of_nothing_is_a_usage_error(server: ScriptedServer, command: Command) -> None:
    result = command("token", "merge", stdin="\n")
    assert result.exit_code == 2
    assert server.requests == []


def test_merge_names_the_token_that_is_none(server: ScriptedServer, command: Command) -> None:
    server.answer("POST", "/v1/tokens", problem(404, "merge[1]: no such token"))
    result = command("token", "merge", "wb1.a", "wb1.forged")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "merge[1]: no such token" in result.stderr


def test_what_cannot_be_a_token_is_told_without_a_trace(
    server: ScriptedServer, command: Command
) -> None:
    result = command("token", "wait", "orders")
    assert (result.exit_code, result.stdout, server.requests) == (1, "", [])
    assert "error: the token begins with 'orders': a token is wb1." in result.stderr
