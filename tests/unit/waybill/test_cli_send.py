"""`waybill send`: sources, chunks, rejected rows, waiting for every token, exit codes."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from waybill.testing import Response, ScriptedServer, event_stream, problem

PATH = "/v1/pipelines/orders/inputs/orders/records"
Command = Callable[..., Result]


def make_receipt(token: str = "wb1.a", accepted: int = 1, *rejected: int) -> Response:
    rows = [{"index": index, "reason": "amount is missing"} for index in rejected]
    return Response(
        json={"token": token, "accepted": accepted, "rejected": rows, "request_id": "r"}
    )


def lines_of(count: int) -> str:
    return "".join(f'{{"id": {number}}}\n' for number in range(count))


def answer_with(server: ScriptedServer, *kinds: str) -> None:
    """A token per chunk, `wb1.0` and so on, each with the outcome of this kind."""
    server.answer("POST", PATH, *(make_receipt(f"wb1.{n}") for n in range(len(kinds))))
    for number, kind in enumerate(kinds):
        status = 503 if kind == "unknown" else 200
        final = Response(status=status, json={"outcome": kind})
        stream = final if kind == "unknown" else event_stream({"outcome": kind})
        server.answer("GET", f"/v1/tokens/wb1.{number}", stream)


def test_the_token_alone_is_on_stdout(server: ScriptedServer, command: Command) -> None:
    server.answer("POST", PATH, make_receipt("wb1.a", 2))
    result = command("send", "orders", "orders", stdin=lines_of(2))
    assert (result.exit_code, result.stdout) == (0, "wb1.a\n")
    assert result.stderr == "2 accepted, 0 rejected\n"


def test_a_record_on_the_command_line(server: ScriptedServer, command: Command) -> None:
    server.answer("POST", PATH, make_receipt())
    assert command("send", "orders", "orders", '{"id": 1}').exit_code == 0
    assert server.requests[0].body == b'{"id": 1}\n'


def test_records_of_a_file(server: ScriptedServer, command: Command, tmp_path: Path) -> None:
    server.answer("POST", PATH, make_receipt())
    file = tmp_path / "rows.ndjson"
    file.write_text('{"id": 1}\n\n{"id": 2}')
    assert command("send", "orders", "orders", str(file)).exit_code == 0
    assert server.requests[0].body == b'{"id": 1}\n{"id": 2}\n'


def test_stdin_goes_in_chunks_each_with_its_token(server: ScriptedServer, command: Command) -> None:
    replies = (make_receipt("wb1.a", 1000), make_receipt("wb1.b", 1000), make_receipt("wb1.c", 5))
    server.answer("POST", PATH, *replies)
    result = command("send", "orders", "orders", "-", stdin=lines_of(2005))
    assert [request.body.count(b"\n") for request in server.requests] == [1000, 1000, 5]
    assert result.stdout == "wb1.a\nwb1.b\nwb1.c\n"
    assert result.stderr == "2005 accepted, 0 rejected\n"


def test_rejected_rows_are_told_with_their_line_and_end_with_1(
    server: ScriptedServer, command: Command
) -> None:
    server.answer("POST", PATH, make_receipt("wb1.a", 999, 3), make_receipt("wb1.b", 4, 0))
    result = command("send", "orders", "orders", stdin="\n" + lines_of(1005))
    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        "line 5: amount is missing",
        "line 1002: amount is missing",
        "1003 accepted, 2 rejected",
    ]


def test_a_chunk_of_only_bad_rows_does_not_stop_the_next(
    server: ScriptedServer, command: Command
) -> None:
    rows = [{"index": index, "reason": "no JSON"} for index in range(1000)]
    server.answer("POST", PATH, problem(422, "all bad", rejected=rows), make_receipt("wb1.b", 3))
    result = command("send", "orders", "orders", stdin=lines_of(1003))
    assert (result.exit_code, result.stdout) == (1, "wb1.b\n")
    assert result.stderr.endswith("3 accepted, 1000 rejected\n")


def test_a_failing_request_says_up_to_where_all_was_sent(
    server: ScriptedServer, command: Command
) -> None:
    server.answer("POST", PATH, make_receipt("wb1.a", 1000), problem(500, "a fault of ours"))
    result = command("send", "orders", "orders", "-o", "json", stdin=lines_of(1500))
    assert result.exit_code == 1
    assert "all up to line 1000 was sent" in result.stderr
    assert "error: a fault of ours" in result.stderr
    assert json.loads(result.stdout)["tokens"] == ["wb1.a"]


def test_wait_follows_every_token(server: ScriptedServer, command: Command) -> None:
    answer_with(server, "complete", "complete")
    result = command("send", "orders", "orders", "--wait", "30", stdin=lines_of(1500))
    assert result.exit_code == 0
    assert result.stdout.splitlines() == ["wb1.0", "wb1.1", "complete", "complete"]
    assert result.stderr.splitlines()[1:] == ["token 1 of 2", "token 2 of 2"]


@pytest.mark.parametrize(
    ("kinds", "code"),
    [
        (("complete", "lost"), 3),
        (("dead_lettered", "complete"), 3),
        (("in_progress", "lost"), 3),
        (("unknown", "in_progress"), 5),
        (("complete", "in_progress"), 4),
    ],
)
def test_wait_ends_with_the_worst_outcome(
    server: ScriptedServer, command: Command, kinds: tuple[str, ...], code: int
) -> None:
    answer_with(server, *kinds)
    result = command("send", "orders", "orders", "--wait", "0", stdin=lines_of(1500))
    assert result.exit_code == code


def test_a_rejected_row_outweighs_a_complete_outcome(
    server: ScriptedServer, command: Command
) -> None:
    server.answer("POST", PATH, make_receipt("wb1.a", 1, 0))
    server.answer("GET", "/v1/tokens/wb1.a", event_stream({"outcome": "complete"}))
    result = command("send", "orders", "orders", "--wait", "30", stdin=lines_of(2))
    assert result.exit_code == 1


def test_json_has_tokens_rejected_lines_and_outcomes(
    server: ScriptedServer, command: Command
) -> None:
    server.answer("POST", PATH, make_receipt("wb1.a", 1, 1))
    server.answer("GET", "/v1/tokens/wb1.a", event_stream({"outcome": "complete"}))
    result = command("send", "orders", "orders", "--wait", "30", "-o", "json", stdin=lines_of(2))
    assert json.loads(result.stdout) == {
        "tokens": ["wb1.a"],
        "accepted": 1,
        "rejected": [{"line": 2, "reason": "amount is missing"}],
        "outcomes": [{"outcome": "complete"}],
    }


def test_no_records_is_an_error(server: ScriptedServer, command: Command) -> None:
    result = command("send", "orders", "orders", stdin="\n\n")
    assert result.exit_code == 1
    assert "one JSON object a line" in result.stderr
    assert server.requests == []


def test_a_file_that_is_not_there_is_a_usage_error(command: Command) -> None:
    result = command("send", "orders", "orders", "missing.ndjson")
    assert result.exit_code == 2
    assert "cannot read missing.ndjson: No such file" in result.stderr
    assert "give one JSON object, a file with one a line (NDJSON), or -" in result.stderr


def test_an_array_on_the_command_line_is_taken_for_no_file(command: Command) -> None:
    result = command("send", "orders", "orders", '[{"order_id": 1}]')
    assert result.exit_code == 2
    assert "a JSON array is not taken: give one JSON object, a file with" in result.stderr


def test_a_json_array_is_told_how_to_become_lines(server: ScriptedServer, command: Command) -> None:
    result = command("send", "orders", "orders", stdin='[{"id": 1}]')
    assert result.exit_code == 2
    assert "jq -c '.[]'" in result.stderr
    assert server.requests == []


def test_rows_that_kafka_refuses_are_told_with_the_hint(
    server: ScriptedServer, command: Command
) -> None:
    rejected = [{"index": 0, "reason": "no key"}]
    answer = problem(422, "kafka takes none", hint="set `key` of the input", rejected=rejected)
    server.answer("POST", PATH, answer)
    result = command("send", "orders", "orders", stdin='{"a": 1}\n')
    assert result.exit_code == 1
    assert result.stderr.splitlines()[:2] == ["line 1: no key", "hint: set `key` of the input"]
