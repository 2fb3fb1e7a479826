"""What the API's description says of formats.

Formats of a body each have an example that works for the input of `examples/orders.yaml`. Formats
of an input each have a manifest.
"""

from typing import Any, Final

from waybill_shared.contract.manifest.formats import FORMATS

NDJSON: Final = '{"order_id": 1, "amount": 9.99}\n{"order_id": 2, "amount": 5}\n'
CSV: Final = "order_id,customer,amount,placed_at\n1,ada,9.99,2026-11-21T09:00:00Z\n2,bob,,\n"
RAW: Final = '{"order_id": 1,\n "amount": 9.99}\n'
WITHOUT_HEADER: Final = "header=absent&delimiter=%3B&null=NULL"
SEMICOLONS: Final = "1;ada;9.99;2026-11-21 09:00:00\n2;bob;NULL;NULL\n"

BODIES: Final[dict[str, Any]] = {
    "required": True,
    "description": "The records, in one of these formats, as they are or with"
    " `Content-Encoding: gzip` or `zstd`. All of it is read before anything is written: a body that"
    " is not what it says leaves nothing.",
    "content": {
        "application/x-ndjson": {
            "schema": {"type": "string", "description": "one JSON object a line"},
            "example": NDJSON,
        },
        "application/json": {
            "schema": {
                "description": "an array of JSON objects, or objects one after the other",
                "type": "array",
                "items": {"type": "object"},
            },
            "example": [{"order_id": 1, "amount": 9.99}, {"order_id": 2, "amount": 5}],
        },
        "text/csv": {
            "schema": {
                "type": "string",
                "description": "one record a row. Numbers, dates, timestamps and booleans are as in"
                " JSON, without quotes; an empty field is null. There are no arrays, maps"
                " and structs.",
            },
            "examples": {
                "with a header": {"value": CSV},
                f"without a header, ?{WITHOUT_HEADER}": {"value": SEMICOLONS},
            },
        },
        "application/vnd.apache.avro": {
            "schema": {
                "type": "string",
                "format": "binary",
                "description": "an Avro object container, with the codecs `null` and `deflate`. The"
                " fields of its records are columns by their names. With a file that Python has"
                " written by `fastavro.writer(file, schema, records)`: `curl --data-binary"
                " @orders.avro -H 'Content-Type: application/vnd.apache.avro' …`",
            },
        },
        "application/octet-stream": {
            "schema": {
                "type": "string",
                "format": "binary",
                "description": "one record, byte for byte: of a JSON input one JSON object",
            },
            "example": RAW,
        },
    },
}

_MANIFEST: Final = """\
version: 1
name: orders
inputs:
  - name: orders
    kafka: {{topic: orders.in}}
    format: {format}
{options}stages:
  - name: load
    inputs: [orders]
    sinks:
      - {{name: out, kafka: {{topic: orders.out}}}}
"""
MANIFESTS: Final[dict[str, Any]] = {
    "required": True,
    "content": {
        "application/yaml": {
            "schema": {"type": "string"},
            "examples": {
                f"format: {name}": {"value": _MANIFEST.format(format=name, options=row.manifest)}
                for name, row in FORMATS.items()
            },
        }
    },
}


def _parameter(name: str, description: str, example: str) -> dict[str, Any]:
    return {
        "name": name,
        "in": "query",
        "required": False,
        "schema": {"type": "string"},
        "example": example,
        "description": description,
    }


OF_FORMATS: Final = [
    _parameter("delimiter", "of CSV: between fields; a character, or `tab`", ";"),
    _parameter("quote", "of CSV: around fields; a character, or `none`", "'"),
    _parameter("escape", "of CSV: makes the next character an ordinary one", "\\"),
    _parameter(
        "header",
        "of CSV: `present` (if nothing is said): the first row names the columns, all of them, in"
        " any order; `absent`: the fields are the columns of the input, in their order",
        "absent",
    ),
    _parameter("null", "of CSV: the field that is null; if not given, an empty one", "NULL"),
    _parameter("encoding", "of CSV: its characters; if not given, UTF-8", "windows-1252"),
    _parameter(
        "line",
        "of CSV that is part of a file: the number of its first row's line there, from 1; reasons"
        " count from it",
        "10001",
    ),
    _parameter("key", "of `application/octet-stream`: the key of the record", "42"),
]
