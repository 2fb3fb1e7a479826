"""Inputs of CSV, Avro and raw bytes on the whole stack: what others put into their topics, and what
comes over HTTP, arrives as rows; what is none dies alone."""

import gzip
import json
import subprocess
import sys
import uuid
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import httpx2
import pytest
from confluent_kafka import Producer

from postgres import Database
from waybill import Client
from waybill_local.stack import StackState
from waybill_shared.contract.dead_letters import MESSAGE
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.clients import make_producer, read_to_end

WAIT_S = 120.0
WAYBILL = Path(sys.executable).with_name("waybill")
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}
SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "order",
    "fields": [
        {"name": "order_id", "type": "long"},
        {"name": "customer", "type": ["null", "string"], "default": None},
        {"name": "amount", "type": ["null", DECIMAL], "default": None},
        {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}], "default": None},
    ],
}
OLDER: dict[str, Any] = {
    "type": "record",
    "name": "order",
    "fields": [{"name": "order_id", "type": "int"}, {"name": "gone", "type": "string"}],
}
MANIFEST = """
version: 1
name: {name}
inputs:
  - name: lines
    kafka: {{topic: {name}.lines, partitions: 1}}
    format: csv
    csv: {{delimiter: ";", nullText: "NULL"}}
    schema: "order_id BIGINT NOT NULL, customer STRING, amount DECIMAL(10,2), day DATE"
    key: order_id
  - name: values
    kafka: {{topic: {name}.values, partitions: 1}}
    format: avro
    avroSchema: {schema}
    expectations: [{{name: positive, expect: order_id > 0, onViolation: drop}}]
  - name: files
    kafka: {{topic: {name}.files, partitions: 1}}
    format: raw
stages:
  - name: of_lines
    inputs: [lines]
    trigger: {{processingTime: 100 milliseconds}}
    sinks: [{{name: lines_out, postgres: {{connection: warehouse, table: public.{name}_lines}}}}]
  - name: of_values
    inputs: [values]
    trigger: {{processingTime: 100 milliseconds}}
    sinks: [{{name: values_out, postgres: {{connection: warehouse, table: public.{name}_values}}}}]
  - name: of_files
    inputs: [files]
    trigger: {{processingTime: 100 milliseconds}}
    steps:
      - name: sizes
        sql: >-
          SELECT CAST(key AS STRING) AS name, length(value) AS size, hex(value) AS data,
          CAST(headers['kind'] AS STRING) AS kind, timestamp IS NOT NULL AS dated FROM files
    sinks: [{{name: files_out, postgres: {{connection: warehouse, table: public.{name}_files}}}}]
"""


class Formats:
    def __init__(self, client: Client, stack: StackState, kafka: KafkaAdmin, name: str) -> None:
        self.name = name
        self._client = client
        self._kafka = kafka
        self._stack = stack
        self._http = httpx2.Client(base_url=client.url, timeout=WAIT_S)
        self._producer: Producer = make_producer(stack.kafka)

    def post(self, input: str, body: bytes, media_type: str, **more: str) -> httpx2.Response:
        path = f"/v1/pipelines/{self.name}/inputs/{input}/records"
        return self._http.post(
            path, content=body, headers={"content-type": media_type}, params=more
        )

    def accepted(self, input: str, body: bytes, media_type: str, **more: str) -> int:
        """How many are, once they have arrived."""
        answer = self.post(input, body, media_type, **more)
        assert answer.status_code == 200, answer.text
        assert answer.json()["rejected"] == []
        assert self._client.wait(answer.json()["token"], WAIT_S).kind == "complete"
        return int(answer.json()["accepted"])

    def produce(
        self,
        input: str,
        value: bytes,
        key: bytes | None = None,
        headers: object = None,
        *,
        kind: str = "complete",
    ) -> None:
        """As others do; and wait until it has arrived."""
        with self._client.track(self._producer, self.name) as tracked:
            tracked.produce(f"{self.name}.{input}", value, key, 0, headers=headers)
            assert self._client.wait(tracked.token(), WAIT_S).kind == kind

    def rows(self, input: str) -> list[tuple[Any, ...]]:
        table = f"public.{self.name}_{input}"
        return sorted(Database.of(self._stack).ask(f"SELECT * FROM {table}"), key=repr)

    def died(self, input: str) -> list[tuple[bytes | None, str]]:
        """With the first words of the reason."""
        said = []
        for each in read_to_end(self._kafka.cluster, f"{self.name}.{input}.dlq", [0]):
            message = dict(each.headers() or ())[MESSAGE]
            assert isinstance(message, bytes)
            said.append((each.value(), message.decode()[:37]))
        return said

    def records(self, input: str) -> list[tuple[bytes | None, bytes | None]]:
        found = read_to_end(self._kafka.cluster, f"{self.name}.{input}", [0])
        return [(message.key(), message.value()) for message in found]


@pytest.fixture(scope="module")
def formats(client: Client, stack: StackState, kafka: KafkaAdmin) -> Iterator[Formats]:
    name = f"formats_{uuid.uuid4().hex[:8]}"
    manifest = MANIFEST.format(name=name, schema=json.dumps(SCHEMA))
    done = client.operation(client.apply(manifest).id, wait_s=WAIT_S)
    assert done.errors == ()
    client.wait_pipeline(name, timeout_s=WAIT_S)
    yield Formats(client, stack, kafka, name)
    client.delete(name)


def avro(schema: dict[str, Any], value: dict[str, Any]) -> bytes:
    target = BytesIO()
    fastavro.schemaless_writer(target, fastavro.parse_schema(schema), value)
    return target.getvalue()


def container(schema: dict[str, Any], values: list[dict[str, Any]]) -> bytes:
    target = BytesIO()
    fastavro.writer(target, fastavro.parse_schema(schema), values)
    return target.getvalue()


def test_lines_of_csv_arrive(formats: Formats) -> None:
    ndjson = b'{"order_id": 1, "customer": "a;\\"b\\"\\n", "amount": 1.005, "day": "2026-11-21"}\n'
    assert formats.accepted("lines", ndjson, "application/x-ndjson") == 1
    table = b"customer,order_id,day,amount\nada,007,,2\n"
    assert formats.accepted("lines", table, "text/csv") == 1
    older = container(OLDER, [{"order_id": 3, "gone": "x"}])
    assert formats.accepted("lines", older, "application/vnd.apache.avro") == 1
    assert formats.accepted("lines", b"4;d;NULL;NULL", "application/octet-stream") == 1
    formats.produce("lines", b"5;;1e1;2024-02-29\r\n")
    assert formats.records("lines") == [
        (b"1", b'1;"a;""b""\n";1.005;2026-11-21'),
        (b"7", b"7;ada;2;NULL"),
        (b"3", b"3;NULL;NULL;NULL"),
        (b"4", b"4;d;NULL;NULL"),
        (None, b"5;;1e1;2024-02-29\r\n"),
    ]
    assert formats.rows("lines") == [
        (1, 'a;"b"\n', Decimal("1.01"), date(2026, 11, 21)),
        (3, None, None, None),
        (4, "d", None, None),
        (5, "", Decimal("10.00"), date(2024, 2, 29)),
        (7, "ada", Decimal("2.00"), None),
    ]


def test_values_of_avro_arrive(formats: Formats) -> None:
    sent = b'{"order_id": 1, "customer": "ada", "amount": "1.005", "day": "2026-11-21", "x": 1}'
    assert formats.accepted("values", sent, "application/json") == 1
    assert formats.accepted("values", b"order_id,customer,amount,day\n2,bob,2,\n", "text/csv") == 1
    older = container(OLDER, [{"order_id": 3, "gone": "x"}, {"order_id": -3, "gone": "x"}])
    assert formats.accepted("values", older, "application/vnd.apache.avro") == 2
    four = avro(SCHEMA, {"order_id": 4})
    assert formats.accepted("values", four, "application/octet-stream", key="k") == 1
    formats.produce("values", avro(SCHEMA, {"order_id": 5, "amount": Decimal("-0.01")}))
    assert formats.records("values")[4] == (b"k", four)
    assert formats.rows("values") == [
        (1, "ada", Decimal("1.01"), date(2026, 11, 21)),
        (2, "bob", Decimal("2.00"), None),
        (3, None, None, None),
        (4, None, None, None),
        (5, None, Decimal("-0.01"), None),
    ]


def test_raw_records_arrive_with_their_headers(formats: Formats) -> None:
    assert formats.accepted("files", b"\x00\xff", "application/octet-stream", key="one") == 1
    headers = [("kind", b"old"), ("other", None), ("kind", b"picture")]
    formats.produce("files", b"\x89PNG", key=b"two", headers=headers)
    assert formats.rows("files") == [
        ("one", 2, "00FF", None, True),
        ("two", 4, "89504E47", "picture", True),
    ]


@pytest.mark.parametrize(
    ("input", "body", "media_type", "reason"),
    [
        ("lines", b'{"order_id": 1, "customer": "NULL"}', "application/json", "stands for null"),
        ("lines", b'{"order_id": 1, "customer": "\\uffff"}', "application/json", "U+FFFF"),
        ("lines", b"1;b;c", "application/octet-stream", "3 fields, where 4 are expected"),
        ("lines", b'1;"b";"c', "application/octet-stream", "field 3: a quote that is not closed"),
        ("lines", b"1;b;x;", "application/octet-stream", "field 3: amount: DECIMAL takes a number"),
        ("lines", b";b;1;NULL", "application/octet-stream", "order_id: BIGINT takes a whole"),
        ("values", b'{"customer": "ada"}', "application/json", "order_id: is missing"),
        ("values", b"\x02\x02", "application/octet-stream", "no value of the Avro schema"),
        ("values", avro(SCHEMA, {"order_id": 1}) + b"x", "application/octet-stream", "1 bytes"),
    ],
)
def test_what_is_no_record_is_refused_with_its_reason(
    formats: Formats, input: str, body: bytes, media_type: str, reason: str
) -> None:
    answer = formats.post(input, body, media_type)
    assert answer.status_code == 422
    assert reason in answer.json()["rejected"][0]["reason"]


def test_a_file_that_cannot_be_read_by_the_schema_is_refused(formats: Formats) -> None:
    other = {"type": "record", "name": "order", "fields": [{"name": "order_id", "type": "string"}]}
    body = container(other, [{"order_id": "1"}])
    answer = formats.post("values", body, "application/vnd.apache.avro")
    assert answer.status_code == 422
    assert "cannot be read as the input's avroSchema" in answer.json()["detail"]


def test_rows_are_not_taken_for_a_raw_input(formats: Formats) -> None:
    for media_type in ("application/json", "text/csv", "application/vnd.apache.avro"):
        answer = formats.post("files", b"{}", media_type)
        assert answer.status_code == 415
        assert "application/octet-stream" in answer.json()["detail"]


def test_records_of_others_that_are_none_die_alone(formats: Formats) -> None:
    before = len(formats.rows("lines")), len(formats.rows("values"))
    formats.produce("lines", b"8;b\nc;1;NULL", kind="dead_lettered")
    formats.produce("lines", b"9;b;1;NULL")
    formats.produce("values", b"\xff" * 20, kind="dead_lettered")
    formats.produce("values", avro(SCHEMA, {"order_id": 9}))
    now = len(formats.rows("lines")), len(formats.rows("values"))
    assert now == (before[0] + 1, before[1] + 1)
    assert formats.died("lines") == [(b"8;b\nc;1;NULL", "not CSV: field 2: a quote that is not")]
    assert formats.died("values") == [(b"\xff" * 20, "it is no value of the Avro schema, or")]


@pytest.mark.parametrize(
    ("input", "name", "content", "options", "row"),
    [
        (
            "lines",
            "rows.csv.gz",
            gzip.compress(b'order_id|customer|amount|day\n101|"a;b\n"|1.5|\n', mtime=0),
            ("--delimiter", "|"),
            (101, "a;b\n", Decimal("1.50"), None),
        ),
        (
            "values",
            "rows.avro",
            container(SCHEMA, [{"order_id": 102, "customer": "c"}]),
            (),
            (102, "c", None, None),
        ),
        (
            "files",
            "one.bin",
            b"\x00\x01",
            ("--record-key", "three"),
            ("three", 2, "0001", None, True),
        ),
    ],
)
def test_a_file_arrives_by_the_command(
    formats: Formats,
    stack: StackState,
    tmp_path: Path,
    input: str,
    name: str,
    content: bytes,
    options: tuple[str, ...],
    row: tuple[object, ...],
) -> None:
    (tmp_path / name).write_bytes(content)
    command = [str(WAYBILL), "send", formats.name, input, str(tmp_path / name), "--url", stack.url]
    command += ["--wait", str(WAIT_S), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=2 * WAIT_S, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1].startswith("complete")
    assert row in formats.rows(input)
