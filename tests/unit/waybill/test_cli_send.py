"""`waybill send`: sources, requests, one token, rejected rows, waiting, exit codes."""

import json
from pathlib import Path

import pytest

from unit.waybill.conftest import Command
from waybill.testing import Response, ScriptedServer, event_stream, problem

PATH = "/v1/pipelines/orders/inputs/orders/records"
TOKENS = "/v1/tokens"
FOREIGN = Response(content=b"<html>", content_type="text/html")


def make_receipt(token: str = "wb1.a", accepted: int = 1, *rejected: int) -> Response:
    rows = [{"index": index, "reason": "amount is missing"} for index in rejected]
    return Response(
        json={"token": token, "accepted": accepted, "rejected": rows, "request_id": "r"}
    )


def lines_of(count: int) -> str:
    return "".join(f'{{"id": {number}}}\n' for number in range(count))


def merged_to(server: ScriptedServer, token: str) -> None:
    server.answer("POST", TOKENS, Response(json={"token": token, "identity": "confirmed"}))


def merged(server: ScriptedServer) -> list[object]:
    return [json.loads(request.body)["merge"] for request in server.asked("POST", TOKENS)]


def sent(server: ScriptedServer) -> list[bytes]:
    return [request.body for request in server.asked("POST", PATH)]


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


def test_a_large_source_goes_in_several_requests_and_has_one_token(
    server: ScriptedServer, command: Command
) -> None:
    replies = (make_receipt("wb1.a", 10_000), make_receipt("wb1.b", 10_000), make_receipt("wb1.c"))
    server.answer("POST", PATH, *replies)
    merged_to(server, "wb1.all")
    result = command("send", "orders", "orders", "-", stdin=lines_of(20_001))
    assert [body.count(b"\n") for body in sent(server)] == [10_000, 10_000, 1]
    assert b"".join(sent(server)).decode() == lines_of(20_001)
    assert merged(server) == [["wb1.a", "wb1.b", "wb1.c"]]
    assert result.stdout == "wb1.all\n"
    assert result.stderr == "20001 accepted, 0 rejected\n"


def test_rejected_rows_are_shown_with_their_line_and_end_with_1(
    server: ScriptedServer, command: Command
) -> None:
    server.answer("POST", PATH, make_receipt("wb1.a", 9_999, 3), make_receipt("wb1.b", 4, 0))
    merged_to(server, "wb1.all")
    result = command("send", "orders", "orders", stdin="\n" + lines_of(10_005))
    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        "line 5: amount is missing",
        "line 10002: amount is missing",
        "10003 accepted, 2 rejected",
    ]


def test_a_request_of_only_bad_rows_does_not_stop_the_next(
    server: ScriptedServer, command: Command
) -> None:
    rows = [{"index": index, "reason": "no JSON"} for index in range(10_000)]
    server.answer("POST", PATH, problem(422, "all bad", rejected=rows), make_receipt("wb1.b", 3))
    result = command("send", "orders", "orders", stdin=lines_of(10_003))
    assert (result.exit_code, result.stdout) == (1, "wb1.b\n")
    assert result.stderr.endswith("3 accepted, 10000 rejected\n")


def test_good_rows_of_a_refused_request_are_no_success(
    server: ScriptedServer, command: Command
) -> None:
    one = [{"index": 1, "reason": "kafka refuses it"}]
    server.answer("POST", PATH, problem(422, "kafka refuses 1 of 2", rejected=one))
    result = command("send", "orders", "orders", stdin=lines_of(2))
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.splitlines() == ["line 2: kafka refuses it", "error: kafka refuses 1 of 2"]


@pytest.mark.parametrize("failure", [problem(500, "a fault of ours"), FOREIGN])
def test_a_failing_request_says_up_to_where_all_was_sent_and_gives_the_token_of_that(
    server: ScriptedServer, command: Command, failure: Response
) -> None:
    replies = (make_receipt("wb1.a", 10_000), make_receipt("wb1.b", 10_000), failure)
    server.answer("POST", PATH, *replies)
    merged_to(server, "wb1.ab")
    result = command("send", "orders", "orders", stdin=lines_of(25_000))
    assert (result.exit_code, result.stdout) == (1, "wb1.ab\n")
    assert "everything up to line 20000 was sent\nhint: send the rest\n" in result.stderr
    assert "error: " in result.stderr
    assert "accepted" not in result.stderr


def test_a_failing_request_in_json_has_the_token_of_what_was_accepted(
    server: ScriptedServer, command: Command
) -> None:
    server.answer("POST", PATH, make_receipt("wb1.a", 10_000), problem(500, "a fault of ours"))
    result = command("send", "orders", "orders", "-o", "json", stdin=lines_of(15_000))
    assert result.exit_code == 1
    assert json.loads(result.stdout)["token"] == "wb1.a"
    assert json.loads(result.stdout)["accepted"] == 10_000


def test_tokens_that_cannot_be_merged_are_all_printed(
    server: ScriptedServer, command: Command
) -> None:
    server.answer("POST", PATH, make_receipt("wb1.a"), make_receipt("wb1.b"))
    server.answer("POST", TOKENS, problem(413, "too many gaps"))
    for form, printed in (("table", "wb1.a\nwb1.b\n"), ("json", None)):
        result = command("send", "orders", "orders", "-o", form, stdin=lines_of(10_001))
        assert result.exit_code == 1
        assert "the 2 tokens of the requests cannot be merged" in result.stderr
        if printed is None:
            said = json.loads(result.stdout)
            assert (said["token"], said["unmerged"]) == (None, ["wb1.b", "wb1.b"])
        else:
            assert result.stdout == printed


def test_the_error_that_ended_it_is_shown_also_where_nothing_can_be_merged(
    server: ScriptedServer, command: Command
) -> None:
    replies = (make_receipt("wb1.a"), make_receipt("wb1.b"), problem(500, "a fault of ours"))
    server.answer("POST", PATH, *replies)
    server.answer("POST", TOKENS, problem(500, "no merging"))
    result = command("send", "orders", "orders", stdin=lines_of(20_001))
    assert (result.exit_code, result.stdout) == (1, "wb1.a\nwb1.b\n")
    assert "error: a fault of ours" in result.stderr


def test_what_is_too_large_is_cut_again_and_so_is_all_after_it(
    server: ScriptedServer, command: Command
) -> None:
    """Requests that are refused have a key too, so that a second run finds the same keys."""
    replies = (
        problem(413, "too many", records_max=4_000),
        make_receipt("wb1.a", 4_000),
        problem(413, "too large", bytes_max=30_000),
        *[make_receipt("wb1.b", 2_000)] * 9,
    )
    server.answer("POST", PATH, *replies)
    merged_to(server, "wb1.all")
    result = command("send", "orders", "orders", "--key", "k", stdin=lines_of(12_000))
    assert result.exit_code == 0, result.stderr
    refused, first, refused_too, *others = sent(server)
    assert [body.count(b"\n") for body in (refused, first, refused_too)] == [10_000, 4_000, 4_000]
    assert b"".join([first, *others]).decode() == lines_of(12_000)
    assert all(len(body) <= len(refused_too) // 2 for body in others)
    keys = [request.headers["idempotency-key"] for request in server.asked("POST", PATH)]
    assert keys == ["k", *(f"k/{number}" for number in range(2, len(keys) + 1))]


def test_one_record_that_is_too_large_fails(server: ScriptedServer, command: Command) -> None:
    server.answer("POST", PATH, problem(413, "too large", bytes_max=5))
    result = command("send", "orders", "orders", stdin="\n" + lines_of(1))
    assert (result.exit_code, result.stdout) == (1, "")
    assert "error: too large" in result.stderr


def test_wait_follows_the_one_token(server: ScriptedServer, command: Command) -> None:
    server.answer("POST", PATH, make_receipt("wb1.a"), make_receipt("wb1.b"))
    merged_to(server, "wb1.all")
    server.answer("GET", "/v1/tokens/wb1.all", event_stream({"outcome": "complete"}))
    result = command("send", "orders", "orders", "--wait", "30", stdin=lines_of(15_000))
    assert result.exit_code == 0
    assert result.stdout.splitlines() == ["wb1.all", "complete"]


@pytest.mark.parametrize(
    ("kind", "code"), [("lost", 3), ("dead_lettered", 3), ("unknown", 5), ("in_progress", 4)]
)
def test_wait_ends_with_the_code_of_the_outcome(
    server: ScriptedServer, command: Command, kind: str, code: int
) -> None:
    server.answer("POST", PATH, make_receipt("wb1.a"))
    said = {"outcome": kind}
    stream = Response(status=503, json=said) if kind == "unknown" else event_stream(said)
    server.answer("GET", "/v1/tokens/wb1.a", stream)
    result = command("send", "orders", "orders", "--wait", "0", stdin=lines_of(1))
    assert result.exit_code == code


def test_a_rejected_row_outweighs_a_complete_outcome(
    server: ScriptedServer, command: Command
) -> None:
    server.answer("POST", PATH, make_receipt("wb1.a", 1, 0))
    server.answer("GET", "/v1/tokens/wb1.a", event_stream({"outcome": "complete"}))
    result = command("send", "orders", "orders", "--wait", "30", stdin=lines_of(2))
    assert result.exit_code == 1


def test_json_has_the_token_rejected_lines_and_the_outcome(
    server: ScriptedServer, command: Command
) -> None:
    server.answer("POST", PATH, make_receipt("wb1.a", 1, 1))
    server.answer("GET", "/v1/tokens/wb1.a", event_stream({"outcome": "complete"}))
    result = command("send", "orders", "orders", "--wait", "30", "-o", "json", stdin=lines_of(2))
    assert json.loads(result.stdout) == {
        "token": "wb1.a",
        "accepted": 1,
        "rejected": [{"line": 2, "reason": "amount is missing"}],
        "outcome": {"outcome": "complete"},
    }


def test_no_records_is_an_error(server: ScriptedServer, command: Command) -> None:
    result = command("send", "orders", "orders", stdin="\n\n")
    assert result.exit_code == 1
    assert "there were no records to send" in result.stderr
    assert server.requests == []


def test_a_file_that_is_not_there_is_a_usage_error(command: Command) -> None:
    result = command("send", "orders", "orders", "missing.ndjson")
    assert result.exit_code == 2
    assert "cannot read missing.ndjson: No such file" in result.stderr
    assert "give a file, - for standard input, or JSON objects" in result.stderr


@pytest.mark.parametrize("arguments", [('[{"id": 1}, {"id": 2}]',), ()])
def test_a_json_array_is_records(
    server: ScriptedServer, command: Command, arguments: tuple[str, ...]
) -> None:
    server.answer("POST", PATH, make_receipt("wb1.a", 2))
    stdin = "" if arguments else ' [{"id": 1},\n {"id": 2}]'
    result = command("send", "orders", "orders", *arguments, stdin=stdin)
    assert (result.exit_code, result.stdout) == (0, "wb1.a\n")
    assert sent(server) == [b'{"id": 1}\n{"id": 2}\n']
    assert server.requests[0].headers["content-type"] == "application/json"


def test_rows_that_kafka_refuses_are_told_with_the_hint(
    server: ScriptedServer, command: Command
) -> None:
    rejected = [{"index": 0, "reason": "no key"}]
    answer = problem(422, "kafka takes none", hint="set `key` of the input", rejected=rejected)
    server.answer("POST", PATH, answer)
    result = command("send", "orders", "orders", stdin='{"a": 1}\n')
    assert result.exit_code == 1
    assert result.stderr.splitlines()[:2] == ["line 1: no key", "hint: set `key` of the input"]
