"""Manifests of one stage for the tests of SQL."""

import json

from waybill_shared.contract.manifest.model import Manifest
from waybill_shared.contract.manifest.reading import read_manifest

ORDERS = (
    "order_id BIGINT, customer STRING, amount DECIMAL(10,2), placed_at TIMESTAMP,"
    " tags ARRAY<STRING>"
)
OTHERS = "order_id BIGINT, note STRING"
RAW_DDL = (
    "topic STRING, partition INT, offset BIGINT, key BINARY, value BINARY,"
    " headers ARRAY<STRUCT<key: STRING, value: BINARY>>, timestamp TIMESTAMP"
)
KAFKA_SINK = "{name: out, kafka: {topic: orders.out, key: order_id}}"
LAKE_SINK = "{name: lake, iceberg: {table: raw.orders}}"


def make_manifest(
    *steps: str, sinks: tuple[str, ...] = (LAKE_SINK,), orders: str = "", others: str = ""
) -> Manifest:
    """A stage over the inputs `orders` and `others`, each with more keys if given, and with steps
    named step_0, step_1, …"""
    named = ", ".join(
        f"{{name: step_{number}, sql: {json.dumps(sql, ensure_ascii=False)}}}"
        for number, sql in enumerate(steps)
    )
    return read_manifest(f"""
version: 1
name: orders
inputs:
  - {{name: orders, kafka: {{topic: orders.in}}, schema: "{ORDERS}"{_more(orders)}}}
  - {{name: others, kafka: {{topic: others.in}}, schema: "{OTHERS}"{_more(others)}}}
stages:
  - name: shape
    inputs: [orders, others]
    steps: [{named}]
    sinks: [{", ".join(sinks)}]
""").model


def _more(keys: str) -> str:
    return f", {keys}" if keys else ""
