"""`waybill send` of files larger than a request, to a real ingress: all records are in Kafka, in
their order and once, and the one token covers exactly them."""

import csv
import gzip
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import fastavro
import httpx2
import pytest

from integration.conftest import Surroundings
from integration.ingress.test_records import Known, make_pipeline, opened
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.clients import read_to_end

WAYBILL = Path(sys.executable).with_name("waybill")
TIMEOUT_S = 120
COUNT = 10_050  # ingress takes 10,000 with a key
ROWS: list[dict[str, Any]] = [
    {"order_id": number, "customer": "ada, é\n" if number % 7 else "b", "amount": "1.25"}
    for number in range(COUNT)
]
SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "orders",
    "fields": [
        {"name": "order_id", "type": "long"},
        {"name": "customer", "type": "string"},
        {"name": "amount", "type": "string"},
    ],
}


@pytest.fixture
def known(surroundings: Surroundings, admin: KafkaAdmin, ingress: httpx2.Client) -> Known:
    return make_pipeline(surroundings, admin, ingress, partitions=1)


def as_csv(rows: list[dict[str, Any]] = ROWS) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerows([list(rows[0]), *(row.values() for row in rows)])
    return text.getvalue().encode()


def as_avro() -> bytes:
    target = io.BytesIO()
    fastavro.writer(target, SCHEMA, ROWS, codec="deflate")
    return target.getvalue()


FILES = {
    "rows.ndjson": b"".join(json.dumps(row).encode() + b"\n" for row in ROWS),
    "rows.json": json.dumps(ROWS, indent=1, ensure_ascii=False).encode(),
    "rows.csv": as_csv(),
    "rows.avro": as_avro(),
    "rows.csv.gz": gzip.compress(as_csv(), mtime=0),
}


def send(
    ingress: httpx2.Client, known: Known, file: Path, *more: str
) -> "subprocess.CompletedProcess[str]":
    command = [str(WAYBILL), "send", known.record.name, "orders", str(file)]
    command += ["--url", str(ingress.base_url), "-o", "json", *more]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)


def numbers(surroundings: Surroundings, known: Known) -> list[int]:
    found = read_to_end(surroundings.kafka, known.topic, [0])
    return [json.loads(message.value() or b"")["order_id"] for message in found]


def covered(surroundings: Surroundings, said: dict[str, Any]) -> int:
    spans = opened(surroundings, said["token"]).parts[0].spans
    return sum(span.end - span.start for span in spans)


@pytest.mark.parametrize("name", FILES)
def test_a_file_larger_than_a_request_has_one_token(
    surroundings: Surroundings, ingress: httpx2.Client, known: Known, tmp_path: Path, name: str
) -> None:
    (tmp_path / name).write_bytes(FILES[name])
    done = send(ingress, known, tmp_path / name)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert (said["accepted"], said["rejected"]) == (COUNT, [])
    assert numbers(surroundings, known) == list(range(COUNT))
    assert covered(surroundings, said) == COUNT


def test_a_file_is_sent_again_with_its_key_and_rejected_rows_have_their_lines(
    surroundings: Surroundings, ingress: httpx2.Client, known: Known, tmp_path: Path
) -> None:
    """Lines are those of the file, also where rows before them have several."""
    rows = [{**row, "customer": "a\nb"} for row in ROWS]
    rows[3] = {**rows[3], "amount": "x"}
    rows[10_020] = {**rows[10_020], "amount": "y"}
    file = tmp_path / "rows.csv"
    file.write_bytes(as_csv(rows))
    for _ in range(2):
        done = send(ingress, known, file, "--key", "one file")
        assert done.returncode == 1
        said = json.loads(done.stdout)
        assert [each["line"] for each in said["rejected"]] == [8, 20_042]
        assert [each["reason"][:23] for each in said["rejected"]] == [
            "line 8, field 3: amount",
            "line 20042, field 3: am",
        ]
        assert said["accepted"] == covered(surroundings, said) == COUNT - 2
    assert len(numbers(surroundings, known)) == COUNT - 2


def test_rows_that_become_too_much_as_json_are_sent_in_smaller_requests(
    surroundings: Surroundings, ingress: httpx2.Client, known: Known, tmp_path: Path
) -> None:
    """10 MB of CSV are more as records; a second run with the same key finds the same requests."""
    count, file = 2_100, tmp_path / "rows.csv"
    text = "x" * 4_980
    rows = [{"order_id": n, "customer": text, "amount": "1.25"} for n in range(count)]
    file.write_bytes(as_csv(rows))
    for _ in range(2):
        done = send(ingress, known, file, "--key", "large")
        assert done.returncode == 0, done.stderr
        assert covered(surroundings, json.loads(done.stdout)) == count
    assert numbers(surroundings, known) == list(range(count))


def test_a_raw_file_is_one_record(
    surroundings: Surroundings, ingress: httpx2.Client, known: Known, tmp_path: Path
) -> None:
    body = b'{"order_id": 1,\n "customer": "ada"}\n'
    (tmp_path / "one.bin").write_bytes(body)
    done = send(ingress, known, tmp_path / "one.bin")
    assert json.loads(done.stdout)["accepted"] == 1
    (message,) = read_to_end(surroundings.kafka, known.topic, [0])
    assert message.value() == body


def test_what_comes_before_the_end_of_a_damaged_file_is_sent_and_said(
    surroundings: Surroundings, ingress: httpx2.Client, known: Known, tmp_path: Path
) -> None:
    (tmp_path / "rows.csv.gz").write_bytes(gzip.compress(as_csv(), mtime=0)[:-9])
    done = send(ingress, known, tmp_path / "rows.csv.gz")
    assert done.returncode == 1
    said = json.loads(done.stdout)
    assert said["accepted"] == covered(surroundings, said) == 10_000
    assert len(numbers(surroundings, known)) == 10_000
    assert "everything up to line " in done.stderr
    assert "cannot read" in done.stderr
