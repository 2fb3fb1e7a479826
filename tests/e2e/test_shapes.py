"""Another shape: two sinks in one stage, a chain of three, and paths that meet again."""

import uuid

from pyiceberg.catalog.sql import SqlCatalog

from e2e.reading import rows_of
from waybill import Client

START_TIMEOUT_S = 120.0
WAIT_S = 120.0
MANIFEST = """
version: 1
name: {name}
inputs:
  - name: clicks
    kafka: {{topic: {name}.in, partitions: 2}}
    schema: "id BIGINT, page STRING, at TIMESTAMP, tags ARRAY<STRING>"
    key: id
stages:
  - name: clean
    inputs: [clicks]
    trigger: {{processingTime: 100 milliseconds}}
    steps:
      - {{name: lower, sql: "SELECT id, lower(page) AS page, at, tags FROM clicks"}}
      - {{name: kept, sql: "SELECT * FROM lower WHERE page <> 'bot'"}}
    sinks:
      - {{name: clean_topic, from: kept, kafka: {{topic: {name}.clean, key: id, partitions: 2}}}}
      - {{name: all_pages, from: lower, iceberg: {{table: raw.{table}_all}}}}
  - name: label
    inputs: [clean_topic]
    trigger: {{processingTime: 100 milliseconds}}
    steps: [{{name: labelled, sql: "SELECT id, concat('label ', page) AS page FROM clean_topic"}}]
    sinks: [{{name: label_topic, kafka: {{topic: {name}.label, key: id, partitions: 3}}}}]
  - name: meet
    inputs: [clean_topic, label_topic]
    trigger: {{processingTime: 100 milliseconds}}
    steps:
      - name: both
        sql: >
          SELECT id, page, at FROM clean_topic
          UNION ALL SELECT id, page, CAST(NULL AS TIMESTAMP) AS at FROM label_topic
    sinks: [{{name: met, iceberg: {{table: raw.{table}_met}}}}]
"""


def test_a_token_is_complete_only_when_every_path_has_reached_every_last_sink(
    client: Client, catalog: SqlCatalog
) -> None:
    name = f"shapes-{uuid.uuid4().hex[:8]}"
    table = name.replace("-", "_")
    operation = client.apply(MANIFEST.format(name=name, table=table))
    done = client.operation(operation.id, wait_s=START_TIMEOUT_S)
    assert done.state == "done", done.errors
    at = "2026-11-21T09:00:00.123456Z"
    clicks = [
        {"id": 1, "page": "HOME", "at": at, "tags": ["a", "b"]},
        {"id": 2, "page": "bot"},
        {"id": 3, "page": "Cart", "at": None, "extra": True},
    ]

    outcome = client.wait(client.send(name, "clicks", clicks), timeout_s=WAIT_S)

    assert outcome.kind == "complete"
    assert set(outcome.iceberg_snapshots) == {"all_pages", "met"}
    every = rows_of(catalog, f"raw.{table}_all", outcome.iceberg_snapshots["all_pages"])
    assert sorted(every.column("page").to_pylist()) == ["bot", "cart", "home"]
    met = rows_of(catalog, f"raw.{table}_met", outcome.iceberg_snapshots["met"]).to_pylist()
    assert sorted(row["page"] for row in met) == ["cart", "home", "label cart", "label home"]
    (home,) = (row for row in met if row["page"] == "home")
    assert home["at"].microsecond == 123456
