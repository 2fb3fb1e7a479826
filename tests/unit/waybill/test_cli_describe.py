"""`waybill describe`: what a pipeline is, why it is stuck, how far it is behind."""

import pytest

from unit.waybill.conftest import MANIFEST, Command
from waybill.testing import Response, ScriptedServer

PATH = "/v1/pipelines/orders"
PIPELINE = {
    "name": "orders",
    "uid": "u-1",
    "phase": "Running",
    "desired": "running",
    "generation": 2,
    "reason": None,
    "since": "2026-11-21T09:00:00.120Z",
}


def behind(sink: str, number: int) -> dict[str, object]:
    return {"stage": "load", "name": sink, "behind": number}


def flows(*sinks: object, dead: int = 0, reason: str | None = None) -> Response:
    """Of this pipeline, after one that has more of everything."""
    known = {"name": "orders", "reason": reason, "inputs": [], "sinks": list(sinks), "dead": dead}
    other = {**known, "name": "others", "reason": None, "sinks": [behind("a", 9)], "dead": 90}
    return Response(json={"at": "2026-11-21T09:00:00.120Z", "items": [other, known]})


def test_describe_tells_all(server: ScriptedServer, command: Command) -> None:
    lake = {"name": "lake", "kind": "iceberg", "target": "raw.orders", "terminal": True}
    details = {
        "phase": "Failed",
        "stuck": {"cause": "no such column", "hint": "correct the SQL"},
        "inputs": [{"name": "orders", "topic": "orders.in", "partitions": 1, "bases": {"0": 7}}],
        "stages": [{"name": "load", "inputs": ["orders"], "sinks": [lake], "last_batch": None}],
        "manifest": MANIFEST,
    }
    server.answer("GET", PATH, Response(json={**PIPELINE, **details}))
    assert command("describe", "orders").stdout.splitlines() == [
        "Name:        orders",
        "Phase:       Failed",
        "Desired:     running",
        "Since:       2026-11-21T09:00:00+00:00",
        "Generation:  2",
        "Uid:         u-1",
        "",
        "stuck: no such column",
        "hint: correct the SQL",
        "",
        "Inputs:",
        "  orders  topic orders.in  1 partition  from 0: 7",
        "",
        "Stages:",
        "  load  reads orders              no batch yet",
        "        lake: iceberg raw.orders  tokens wait for it",
        "",
        "Manifest:",
        "  version: 1",
        "  name: orders",
    ]


def test_describe_says_when_a_stop_becomes_a_stronger_one(
    server: ScriptedServer, command: Command
) -> None:
    stopping = {
        **PIPELINE,
        "phase": "CheckpointStopping",
        "escalates_at": "2026-11-21T09:02:00.120Z",
    }
    server.answer("GET", PATH, Response(json=stopping))
    assert "Escalates:   2026-11-21T09:02:00+00:00" in command("describe", "orders").stdout


def test_describe_says_when_the_next_run_begins(server: ScriptedServer, command: Command) -> None:
    waits = {**PIPELINE, "phase": "Finished", "next_run_at": "2026-11-21T09:02:00.120Z"}
    server.answer("GET", PATH, Response(json=waits))
    assert "Next run:    2026-11-21T09:02:00+00:00" in command("describe", "orders").stdout


def test_describe_says_how_many_tasks_run_at_once(server: ScriptedServer, command: Command) -> None:
    server.answer("GET", PATH, Response(json={**PIPELINE, "parallelism": 4}))
    assert "Parallelism:  4" in command("describe", "orders").stdout


def test_describe_warns_of_fields_that_are_left_out(
    server: ScriptedServer, command: Command
) -> None:
    warnings = ["field 'celcius' is no column: did you mean 'celsius'?"]
    source = {"name": "readings", "topic": "readings.in", "partitions": 1, "bases": {"0": 7}}
    ignored = {**source, "ignored_records": 1_200, "warnings": warnings}
    server.answer("GET", PATH, Response(json={**PIPELINE, "inputs": [ignored]}))
    told = command("describe", "orders").stdout.splitlines()
    had = "1200 records of input readings had fields that are no columns"
    assert told[told.index("Inputs:") + 2 :] == [
        "",
        f"warning: {had}; these were left out:",
        "  field 'celcius' is no column: did you mean 'celsius'?",
    ]


def test_describe_tells_of_records_that_rules_drop_or_warn_of(
    server: ScriptedServer, command: Command
) -> None:
    source = {"name": "readings", "topic": "readings.in", "partitions": 1, "bases": {"0": 7}}
    counts = {"dropped": {"positive": 1_200, "malformed": 2}, "warned": {"known": 1}}
    server.answer("GET", PATH, Response(json={**PIPELINE, "inputs": [{**source, **counts}]}))
    told = command("describe", "orders").stdout.splitlines()
    assert told[told.index("Inputs:") + 2 :] == [
        "",
        "warning: 1202 records of input readings were dropped, by rule: malformed 2, positive 1200",
        "",
        "warning: 1 record of input readings was only warned of, by rule: known 1",
    ]


@pytest.mark.parametrize("hint", ["wait", None])
def test_describe_says_why_nothing_is_processed(
    server: ScriptedServer, command: Command, hint: str | None
) -> None:
    stuck = {"cause": "no kafka", "hint": hint}
    server.answer("GET", PATH, Response(json={**PIPELINE, "stuck": stuck}))
    told = command("describe", "orders").stdout.splitlines()
    said = told[told.index("stuck: no kafka") :]
    assert said == ["stuck: no kafka", *([f"hint: {hint}"] if hint else [])]


def test_describe_says_what_is_wrong_next_to_the_phase(
    server: ScriptedServer, command: Command
) -> None:
    since, hint = PIPELINE["since"], "look at its log"
    hangs = {"kind": "degraded", "stage": "load", "cause": "no_progress", "since": since}
    silent = {"kind": "degraded", "stage": None, "cause": "driver_silent", "since": since}
    conditions = [{**hangs, "hint": hint}, {**silent, "hint": None}]
    server.answer("GET", PATH, Response(json={**PIPELINE, "conditions": conditions}))
    lines = [
        each for each in command("describe", "orders").stdout.splitlines() if "Degraded" in each
    ]
    assert [line.split(maxsplit=1)[1] for line in lines] == [
        "no_progress in stage load since 2026-11-21T09:00:00+00:00",
        "driver_silent since 2026-11-21T09:00:00+00:00",
    ]


def test_describe_says_which_stage_is_stopped(server: ScriptedServer, command: Command) -> None:
    failed = {"kind": "degraded", "stage": "load", "cause": "stage_failed"}
    stages = [
        {"name": name, "inputs": ["orders"], "sinks": [], "last_batch": None}
        for name in ("enrich", "load")
    ]
    conditions = [{**failed, "since": PIPELINE["since"], "hint": None}]
    body = {**PIPELINE, "stages": stages, "conditions": conditions}
    server.answer("GET", PATH, Response(json=body))
    lines = command("describe", "orders").stdout.splitlines()
    (line,) = (each for each in lines if "stopped, " in each)
    assert line.split()[0] == "load"


def test_describe_says_how_far_each_sink_is_behind(
    server: ScriptedServer, command: Command
) -> None:
    sinks = [{"name": n, "kind": "kafka", "target": "t", "terminal": n == "b"} for n in ("a", "b")]
    stage = {"name": "load", "inputs": ["orders"], "sinks": sinks, "last_batch": None}
    server.answer("GET", PATH, Response(json={**PIPELINE, "stages": [stage]}))
    server.answer("GET", "/v1/flow", flows(behind("b", 7)))
    lines = [line.split() for line in command("describe", "orders").stdout.splitlines()]
    assert ["a:", "kafka", "t"] in lines
    assert ["b:", "kafka", "t", "7", "offsets", "behind,", "tokens", "wait", "for", "it"] in lines


def test_describe_counts_dead_letters_as_the_console_does(
    server: ScriptedServer, command: Command
) -> None:
    told = Response(json=PIPELINE)
    server.answer("GET", PATH, told, told, told)
    server.answer("GET", "/v1/flow", flows(dead=4), flows(dead=4, reason="silent"), flows())
    said = [command("describe", "orders").stdout for _ in range(3)]
    assert "Dead letters:  about 4: waybill dlq list orders" in said[0]
    assert "Dead letters" not in said[1] + said[2]


def test_describe_says_what_the_last_batch_was(server: ScriptedServer, command: Command) -> None:
    batch = {
        "batch": 12,
        "committed_at": "2026-11-21T09:00:00.634Z",
        "rows": 3,
        "version": {"iceberg_snapshot_id": 61502},
    }
    stage = {"name": "load", "inputs": ["orders"], "sinks": [], "last_batch": batch}
    server.answer("GET", PATH, Response(json={**PIPELINE, "stages": [stage]}))
    expected = "last batch 12 at 2026-11-21T09:00:00.634Z, 3 rows, iceberg snapshot 61502"
    assert expected in command("describe", "orders").stdout


@pytest.mark.parametrize(("guard", "told"), [("strict", False), ("trusted", True)])
def test_describe_says_where_queries_are_trusted(
    server: ScriptedServer, command: Command, guard: str, *, told: bool
) -> None:
    server.answer("GET", PATH, Response(json={**PIPELINE, "sql_guard": guard}))
    lines = command("describe", "orders").stdout.splitlines()
    assert any(line.startswith("SQL guard:   trusted: ") for line in lines) is told
