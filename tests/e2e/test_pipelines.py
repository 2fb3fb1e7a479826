"""The life of a pipeline, and what its tokens say when it is not well."""

import json
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import redis
from pyiceberg.catalog.sql import SqlCatalog

from e2e.conftest import Apply, Pipeline, order, orders_manifest
from e2e.faults import process_of
from e2e.reading import rows_of
from e2e.waiting import drivers_of
from waybill import Client, Invalid, Outcome, Position
from waybill_local.stack import StackState
from waybill_shared.kafka.clients import make_producer, produce_and_wait

WAIT_S = 120.0
POLL_S = 0.05
Produce = Callable[[str, dict[str, object]], Position]


def place_of(words: str, text: str) -> tuple[int, int]:
    before = text[: text.index(words)]
    return before.count("\n") + 1, len(before) - before.rfind("\n")


@pytest.fixture(scope="module")
def pipeline(apply_orders: Apply) -> Pipeline:
    """One that these tests may stop, break and restart."""
    return apply_orders(("    format: json\n", "    format: json\n    onMalformed: fail\n"))


def test_an_invalid_manifest_is_refused_with_line_column_and_suggestion(client: Client) -> None:
    manifest, _ = orders_manifest()

    with pytest.raises(Invalid) as refused:
        client.apply(manifest.replace("partitions: 4", "partitons: 4"))

    (fault,) = refused.value.errors
    assert fault.line == manifest[: manifest.index("partitions: 4")].count("\n") + 1
    assert "partitions" in str(fault.hint)


def test_an_sql_error_names_its_place_and_what_would_have_worked(client: Client) -> None:
    manifest, pipeline = orders_manifest()

    operation = client.apply(manifest.replace("amount * 0.2", "amunt * 0.2"))
    failed = client.operation(operation.id, wait_s=WAIT_S)

    assert failed.state == "failed"
    (fault,) = failed.errors
    assert fault.path == "stages.0.steps.0.sql"
    assert (fault.line, fault.column) == place_of("amunt", manifest.replace("amount *", "amunt *"))
    assert "amunt" in fault.message
    assert "amount" in str(fault.hint)
    assert pipeline.name not in {each.name for each in client.pipelines()}


ATTACKS = {
    "SELECT reflect('java.lang.System', 'getenv', 'PATH') AS a FROM orders": "it runs Java code",
    "SELECT TRANSFORM (order_id) USING 'cat' AS (a STRING) FROM orders": "TRANSFORM … USING",
    "SELECT * FROM text.`/etc/passwd`": "names have one part here",
    "INSERT OVERWRITE DIRECTORY '{folder}' USING csv SELECT 1 AS a": "this is a command",
    "ADD JAR '/tmp/some.jar'": "this is a command",
    "SELECT * FROM catalog.raw.others": "names have one part here",
    "SELECT * FROM IDENTIFIER('or' || 'ders')": "IDENTIFIER",
    "SELECT repeat(customer, 1000000) AS a FROM orders": "10000",
    "SELECT rlike(customer, customer) AS a FROM orders": "constant",
    "SELECT current_user() AS a FROM orders": "it depends on the machine",
    "SELECT rand() AS a FROM orders": "when a batch is run again",
    "SELECT raise_error(customer) AS a FROM orders": "it ends the pipeline",
}
"""What is said of each."""


def test_attacks_are_refused_with_their_places_and_other_pipelines_go_on(
    client: Client, pipeline: Pipeline, tmp_path: Path
) -> None:
    manifest, attacked = orders_manifest()
    queries = [attack.format(folder=tmp_path / "made") for attack in ATTACKS]
    steps = "".join(
        f"      - name: bad_{number}\n        sql: |\n          {query}\n"
        for number, query in enumerate(queries)
    )
    text = manifest.replace("    steps:\n", f"    steps:\n{steps}")

    operation = client.apply(text)
    failed = client.operation(operation.id, wait_s=WAIT_S)

    assert failed.state == "failed"
    for query, said, fault in zip(queries, ATTACKS.values(), failed.errors, strict=True):
        assert said in f"{fault.message} {fault.hint}"
        assert fault.line == place_of(query, text)[0]
    assert attacked.name not in {each.name for each in client.pipelines()}
    assert [*tmp_path.iterdir()] == []
    token = client.send(pipeline.name, "orders", [order(1)]).token
    assert client.wait(token, timeout_s=WAIT_S).kind == "complete"


def test_a_stopped_pipeline_holds_its_tokens_and_completes_them_when_started(
    client: Client, pipeline: Pipeline, produce: Produce
) -> None:
    before = client.send(pipeline.name, "orders", [order(1)]).token
    assert client.wait(before, timeout_s=WAIT_S).kind == "complete"
    assert client.operation(client.stop(pipeline.name).id, wait_s=WAIT_S).state == "done"
    *_, run = client.runs(pipeline.name)
    assert run.end == "stopped"
    assert min(run.batches or 0, run.rows or 0) >= 1
    token = client.send(pipeline.name, "orders", [order(1)]).token

    held = _until(client, token, lambda outcome: outcome.stages[0].blocked_by is not None)
    assert held.kind == "in_progress"
    assert held.stages[0].blocked_by == "stage_stopped"
    assert client.pipeline(pipeline.name).phase == "Stopped"

    assert client.operation(client.start(pipeline.name).id, wait_s=WAIT_S).state == "done"
    assert client.wait(token, timeout_s=WAIT_S).kind == "complete"


def test_a_killed_driver_is_restarted_and_every_row_arrives_once(
    client: Client, pipeline: Pipeline, stack: StackState, catalog: SqlCatalog
) -> None:
    receipt = client.send(pipeline.name, "orders", [order(n) for n in range(100, 150)])
    for process in drivers_of(stack, str(client.pipeline(pipeline.name).uid)):
        process.send_signal(signal.SIGKILL)

    outcome = client.wait(receipt.token, timeout_s=WAIT_S)

    assert outcome.kind == "complete"
    snapshot_id = outcome.iceberg_snapshots["lake"]
    numbers = [r["order_id"] for r in rows_of(catalog, pipeline.table, snapshot_id).to_pylist()]
    assert sorted(n for n in numbers if n >= 100) == list(range(100, 150))


def test_after_redis_is_wiped_a_token_answers_as_before(
    client: Client, pipeline: Pipeline, stack: StackState
) -> None:
    token = client.send(pipeline.name, "orders", [order(200)]).token
    before = client.wait(token, timeout_s=WAIT_S)

    redis.Redis.from_url(stack.redis).flushall()
    seen = [client.outcome(token)]
    after = client.wait(token, timeout_s=WAIT_S)

    assert {outcome.kind for outcome in seen} <= {"unknown", "complete"}
    assert after.kind == "complete"
    assert after.iceberg_snapshots == before.iceberg_snapshots


def test_a_killed_token_tracker_only_delays_the_answer(
    client: Client, pipeline: Pipeline, stack: StackState
) -> None:
    old = client.send(pipeline.name, "orders", [order(201)]).token
    client.wait(old, timeout_s=WAIT_S)

    process_of(stack, "token_tracker").kill()
    new = client.send(pipeline.name, "orders", [order(202)]).token

    assert client.outcome(old).kind == "complete"
    assert client.wait(new, timeout_s=WAIT_S).kind == "complete"


def test_a_record_that_does_not_parse_stops_the_stage_and_names_its_position(
    client: Client, pipeline: Pipeline, stack: StackState, catalog: SqlCatalog
) -> None:
    producer = make_producer(stack.kafka)
    value = json.dumps(order(300, amount="much")).encode()
    report = produce_and_wait(producer, pipeline.topic, "300", value)
    token = client.token_for(pipeline.name, input="orders").token

    outcome = _until(client, token, lambda outcome: outcome.stages[0].blocked_by == "stage_failed")
    assert outcome.kind == "in_progress"
    (stopped,) = client.pipeline(pipeline.name).conditions
    assert (stopped.stage, stopped.cause) == ("enrich", "stage_failed")
    assert f"{pipeline.topic}[{report.partition()}]@{report.offset()}" in (stopped.message or "")
    rows = catalog.load_table(pipeline.table).scan().to_arrow().to_pylist()
    assert all(row["order_id"] is not None for row in rows)


def test_a_deleted_pipeline_loses_what_it_had_not_done_and_its_name_is_free_again(
    client: Client, pipeline: Pipeline
) -> None:
    """Follows the test above: the pipeline stands before a record that it cannot take."""
    token = client.send(pipeline.name, "orders", [order(301)]).token
    uid = client.pipeline(pipeline.name).uid
    manifest = client.pipeline(pipeline.name).manifest
    assert manifest is not None

    assert client.operation(client.delete(pipeline.name).id, wait_s=WAIT_S).state == "done"
    outcome = client.wait(token, timeout_s=WAIT_S)
    again = client.apply(manifest.replace("version: 1\n", "version: 1\nstate: stopped\n"))
    assert client.operation(again.id, wait_s=WAIT_S).state == "done"

    assert outcome.kind == "lost"
    assert outcome.lost[0].reason == "pipeline_deleted"
    assert client.wait_pipeline(pipeline.name, "Stopped", timeout_s=WAIT_S).uid != uid


def _until(client: Client, token: str, wanted: Callable[[Outcome], bool]) -> Outcome:
    deadline = time.monotonic() + WAIT_S
    while True:
        outcome = client.outcome(token)
        if outcome.stages and wanted(outcome):
            return outcome
        assert time.monotonic() < deadline, outcome
        time.sleep(POLL_S)
