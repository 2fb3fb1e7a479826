"""What a new user does in the first hour, with nothing but the command line."""

import json
from pathlib import Path

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.types import DoubleType

from e2e.command_line import Ended, Run
from e2e.reading import rows_of
from e2e.waiting import eventually, run_of
from waybill import Client
from waybill_local.stack import StackState
from waybill_shared.kafka.clients import make_producer, produce_and_wait

WAIT = ("--wait", "120")
MANIFEST = """
version: 1
name: hour
inputs:
  - name: shop
    kafka: {topic: hour.shop}
    schema: "id BIGINT, amount DOUBLE"
  - name: web
    kafka: {topic: hour.web}
    schema: "id BIGINT, amount DOUBLE"
stages:
  - name: unite
    inputs: [shop, web]
    trigger: {processingTime: 100 milliseconds}
    steps:
      - name: united
        sql: |
          SELECT id, amount, 'shop' AS source FROM shop
          UNION ALL
          SELECT id, amount, 'web' AS source FROM web
    sinks:
      - {name: heard, kafka: {topic: hour.heard, key: id}}
      - {name: lake, iceberg: {table: raw.hour}}
"""
TAX = ("AS source FROM", "AS source, amount * 0.2 AS tax FROM")
MISSPELT = ("'web' AS source", "'web' AS source, amuont")


def test_the_manifest_that_init_writes_runs_as_it_is(run: Run, tmp_path: Path) -> None:
    run("init", "first")
    run("check", "-f", "first.yaml")
    run("apply", "-f", "first.yaml")
    run("wait", "first")
    arrived = run("send", "first", "records", '{"order_id": 1, "amount": 12.5}', *WAIT)
    assert "complete first" in arrived.stdout

    applied = run("get", "manifest", "first").stdout
    assert applied == (tmp_path / "first.yaml").read_text()
    assert run("diff", "-f", "first.yaml").stdout == "nothing would change\n"

    run("init", "second", "--from", "first.in")
    assert 'schema: "order_id BIGINT, amount DOUBLE"' in (tmp_path / "second.yaml").read_text()


def test_an_own_pipeline_is_changed_without_fear(
    run: Run, tmp_path: Path, stack: StackState, client: Client, catalog: SqlCatalog
) -> None:
    file = tmp_path / "hour.yaml"
    file.write_text(MANIFEST)
    run("apply", "-f", "hour.yaml")
    for number, where in enumerate(("shop", "web")):
        run("send", "hour", where, f'{{"id": {number}, "amount": 10}}', *WAIT)

    # A column: the table lacks it, and says so; with it the change runs.
    file.write_text(MANIFEST.replace(*TAX))
    lacking = run("apply", "-f", "hour.yaml", code=1)
    line = MANIFEST[: MANIFEST.index("{name: lake")].count("\n") + 1
    assert f"hour.yaml:{line}:" in lacking.stderr
    assert "has no column tax" in lacking.stderr
    with catalog.load_table("raw.hour").update_schema() as update:
        update.add_column("tax", DoubleType())
    assert "column tax added" in run("diff", "-f", "hour.yaml").stdout
    run("apply", "-f", "hour.yaml", "--timeout", "0")
    run("wait", "hour")  # and not at once, because the old one runs
    sent = run("send", "hour", "web", '{"id": 2, "amount": 10}', *WAIT, "-o", "json")
    taxes = {row["id"]: row["tax"] for row in newest(catalog, sent)}
    assert taxes == {0: None, 1: None, 2: 2.0}

    # A wrong edit stops nothing.
    good, before = file.read_text(), run_of(client, stack, "hour")
    file.write_text(good.replace(*MISSPELT))
    wrong = run("apply", "-f", "hour.yaml", code=1)
    assert "did you mean 'amount'?" in wrong.stderr
    assert run_of(client, stack, "hour") == before

    # What loses something asks first.
    fewer = "".join(part for part in good.splitlines(keepends=True) if "name: heard" not in part)
    file.write_text(fewer)
    refused = run("apply", "-f", "hour.yaml", code=2)
    assert "sink heard of stage unite" in refused.stderr
    assert "--yes" in refused.stderr
    run("apply", "-f", "hour.yaml", "--yes")
    run("send", "hour", "shop", '{"id": 3, "amount": 10}', *WAIT)


def newest(catalog: SqlCatalog, sent: Ended) -> list[dict[str, object]]:
    """The rows of the snapshot that an outcome names."""
    outcome = json.loads(sent.stdout)["outcome"]
    sinks = [sink for stage in outcome["stages"] for sink in stage["sinks"]]
    (version,) = [sink["version"] for sink in sinks if sink["name"] == "lake"]
    rows: list[dict[str, object]] = rows_of(
        catalog, "raw.hour", int(version["iceberg_snapshot_id"])
    ).to_pylist()
    return rows


def test_misspelt_fields_and_bad_records_are_named(run: Run, stack: StackState) -> None:
    run("init", "strict")
    run("apply", "-f", "strict.yaml")
    run("send", "strict", "records", '{"order_id": 1, "amout": 10}', *WAIT)

    def told() -> str:
        return run("describe", "strict").stdout

    eventually(lambda: "1 record of input records had fields that are no columns" in told())
    assert "field 'amout' is no column: did you mean 'amount'?" in told()

    # Wherever it comes from.
    bad = run("send", "strict", "records", '{"order_id": "one"}', code=1)
    assert "order_id" in bad.stderr
    produce_and_wait(make_producer(stack.kafka), "strict.in", "1", b'{"order_id": "one"}')
    eventually(lambda: "strict.in[" in run("dlq", "list", "strict").stdout)
    assert "order_id" in run("dlq", "list", "strict").stdout
