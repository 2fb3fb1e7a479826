"""Examples of answers for the documentation; a test checks each with its model."""

from collections.abc import Mapping
from typing import Any, Final

from waybill_shared.contract.words import (
    DeadReason,
    EventType,
    OutcomeKind,
    StateInSink,
    StateInStage,
    WatchEnd,
)
from waybill_status.adapters.http.streams import EVENT_STREAM

JsonObject = dict[str, Any]


def shown(
    example: JsonObject, *, streamed: bool = False, others: Mapping[str, JsonObject] | None = None
) -> JsonObject:
    """Return what a route says of an answer with an example. `streamed`: it is also sent as events.
    `others`: more examples, by what they show."""
    streams = {EVENT_STREAM: {"schema": {"type": "string"}}} if streamed else {}
    told: JsonObject = {"example": example}
    if others:
        named = {"as it mostly is": example, **others}
        told = {"examples": {name: {"value": value} for name, value in named.items()}}
    return {"content": {"application/json": told, **streams}}


COMPLETE: Final[JsonObject] = {
    "outcome": OutcomeKind.COMPLETE,
    "pipeline": "orders",
    "accepted": 3,
    "issued_at": "2026-11-21T09:00:00.120Z",
    "completed_at": "2026-11-21T09:00:00.634Z",
    "stages": [
        {
            "stage": "enrich",
            "state": StateInStage.DONE,
            "batch": 41,
            "committed_at": "2026-11-21T09:00:00.301Z",
            "blocked_by": None,
            "sinks": [
                {
                    "name": "enriched_topic",
                    "state": StateInSink.COMMITTED,
                    "batch_rows": 3,
                    "read_at": "2026-11-21T09:00:00.180Z",
                    "committed_at": "2026-11-21T09:00:00.301Z",
                    "behind": 0,
                    "version": None,
                }
            ],
        },
        {
            "stage": "load",
            "state": StateInStage.DONE,
            "batch": 12,
            "committed_at": "2026-11-21T09:00:00.634Z",
            "blocked_by": None,
            "sinks": [
                {
                    "name": "lake",
                    "state": StateInSink.COMMITTED,
                    "batch_rows": 3,
                    "read_at": "2026-11-21T09:00:00.390Z",
                    "committed_at": "2026-11-21T09:00:00.634Z",
                    "behind": 0,
                    "version": {"iceberg_snapshot_id": "6150272777574668285"},
                }
            ],
        },
    ],
    "dead": [],
    "dead_count": 0,
    "dropped": [],
    "lost": [],
    "eta_s": None,
}
DEAD_LETTERED: Final[JsonObject] = {
    **COMPLETE,
    "outcome": OutcomeKind.DEAD_LETTERED,
    "dead": [
        {
            "topic": "orders.in",
            "partition": 0,
            "offset": 41,
            "stage": "enrich",
            "sink": None,
            "reason": DeadReason.VIOLATED,
            "rule": "positive",
            "message": "amount > 0 is not true",
            "dead_letter": {"topic": "orders.in.dlq", "partition": 0, "offset": 3},
            "id": "orders.in.dlq:0:3:41",
            "exact": True,
            "replayed_as": {"topic": "orders.in", "partition": 0, "offset": 57},
        },
        {
            "topic": "orders.in",
            "partition": 1,
            "start": 12,
            "end": 20,
            "stage": "load",
            "sink": "lake",
            "up_to": 1,
            "reason": DeadReason.REFUSED,
            "rule": None,
            "message": "the row does not fit the table",
            "exact": False,
        },
    ],
    "dead_count": 2,
    "dropped": [{"rule": "orders.known_customer", "stage": "enrich", "up_to": 1}],
}
SUMMARY: Final[JsonObject] = {
    "name": "orders",
    "uid": "0d4f7a52-6f0e-5c0e-9d5b-0a7b6c1c5e11",
    "generation": 2,
    "desired": "running",
    "phase": "Running",
    "reason": None,
    "since": "2026-11-21T08:59:31.004Z",
    "stuck": None,
}
PIPELINES: Final[JsonObject] = {"items": [SUMMARY], "next_cursor": None}
PIPELINE: Final[JsonObject] = {
    **SUMMARY,
    "blocked_by": None,
    "attempt": 0,
    "next_attempt_at": None,
    "error": None,
    "sql_guard": "strict",
    "inputs": [
        {
            "name": "orders",
            "topic": "orders.in",
            "topic_id": "bM1xJ0yQRbm2a0Yw3oJm5w",
            "partitions": 2,
            "bases": {"0": 0, "1": 0},
            "format": "json",
            "columns": [
                {"name": "order_id", "type": "BIGINT", "required": True},
                {"name": "amount", "type": "DECIMAL(10,2)", "required": False},
            ],
            "ignored_records": 3,
            "warnings": ["field 'amout' is no column: did you mean 'amount'?"],
            "dropped": {"malformed": 2},
            "warned": {"positive": 1},
        }
    ],
    "stages": [
        {
            "name": "load",
            "inputs": ["orders"],
            "sinks": [
                {
                    "name": "lake",
                    "kind": "iceberg",
                    "target": "lakehouse.raw.orders",
                    "terminal": True,
                }
            ],
            "last_batch": {
                "batch": 12,
                "committed_at": "2026-11-21T09:00:00.634Z",
                "rows": 3,
                "version": {"iceberg_snapshot_id": "6150272777574668285"},
            },
        }
    ],
    "graph": {
        "nodes": [
            {"id": "input/orders", "kind": "input"},
            {"id": "stage/load", "kind": "stage"},
            {"id": "sink/lake", "kind": "sink"},
        ],
        "edges": [
            {"from": "input/orders", "to": "stage/load"},
            {"from": "stage/load", "to": "sink/lake"},
        ],
    },
    "manifest": "version: 1\nname: orders\n",
}
MANIFESTS: Final[JsonObject] = {
    "items": [
        {"generation": 2, "manifest": "version: 1\nname: orders\n", "until": None},
        {
            "generation": 1,
            "manifest": "version: 1\nname: orders\nstate: stopped\n",
            "until": "2026-11-21T08:59:31.004Z",
        },
    ]
}
FLOW: Final[JsonObject] = {
    "at": "2026-11-21T09:00:01.002Z",
    "items": [
        {
            "name": "orders",
            "uid": "0d4f7a52-6f0e-5c0e-9d5b-0a7b6c1c5e11",
            "reason": None,
            "inputs": [
                {
                    "name": "orders",
                    "written": 4711,
                    "arrived": 4708,
                    "partitions": [{"partition": 0, "end": 4711, "arrived": 4708}],
                }
            ],
            "sinks": [
                {"stage": "enrich", "name": "enriched_topic", "behind": 0},
                {"stage": "load", "name": "lake", "behind": 3},
            ],
            "dead": 2,
        }
    ],
}
EVENTS: Final[JsonObject] = {
    "items": [
        {
            "id": "1795251571004.0",
            "at": "2026-11-21T08:59:31.004Z",
            "kind": "transition",
            "generation": 2,
            "phase_from": "Starting",
            "phase": "Running",
            "reason": "driver runs",
            "actor": "3f9c0a1b2c3d",
            "blocked_by": None,
            "error": None,
            "attempt": 0,
            "next_attempt_at": None,
            "run_id": "8f14e45fceea167a5a36dedd4bea2543",
            "sql_guard": "strict",
        }
    ]
}
STATUS_EVENTS: Final[JsonObject] = {
    "items": [
        {
            "specversion": "1.0",
            "id": "8f14e45fceea167a5a36dedd4bea2543.final",
            "source": "/waybill/waybill",
            "type": EventType.TOKEN_FINAL,
            "subject": "8f14e45fceea167a5a36dedd4bea2543",
            "time": "2026-11-21T09:00:00.640Z",
            "datacontenttype": "application/json",
            "tenant": "default",
            "pipeline": "orders",
            "stage": None,
            "data": {
                "watch": "8f14e45fceea167a5a36dedd4bea2543",
                "token_hash": "sha256:6ca13d52ca70c883…",
                "ended_as": WatchEnd.COMPLETE,
                "outcome": COMPLETE,
                "labels": {"batch": "7"},
            },
        }
    ],
    "position": "3-1042",
}
_LETTER: Final[JsonObject] = {
    "id": "orders.in.dlq:0:3:41",
    "topic": "orders.in.dlq",
    "partition": 0,
    "offset": 3,
    "at": "2026-11-21T09:00:00.280Z",
    "stage": "enrich",
    "sink": None,
    "reason": DeadReason.VIOLATED,
    "rule": "positive",
    "message": "amount > 0 is not true",
    "source": {"topic": "orders.in", "partition": 0, "offset": 41},
    "key": None,
    "value": '{"order_id": 1, "amount": -2}',
}
DEAD_LETTERS: Final[JsonObject] = {
    "items": [{**_LETTER, "truncated": False}],
    "next_cursor": None,
}
DEAD_LETTER: Final[JsonObject] = {
    **_LETTER,
    "key_base64": None,
    "value_base64": None,
    "headers": [{"name": "traceparent", "value": "00-4bf9-00f0-01", "value_base64": None}],
    "error": DeadReason.VIOLATED,
    "batch": "7f1a:41",
}
