"""Bodies of each format and size, over HTTP and in Kafka."""

import csv
import gzip
import io
import json
import zlib
from collections.abc import Iterator
from pathlib import Path

import fastavro
import httpx2
import psutil
import pytest
import zstandard

from integration.conftest import Serving, Surroundings, serving
from integration.ingress.test_records import PARTITIONS, Known, make_pipeline, opened
from waybill_shared.kafka.admin import KafkaAdmin, make_admin
from waybill_shared.kafka.clients import read_to_end

ROWS = [
    {"order_id": n, "customer": f"é{n}", "amount": str(n) + ".25" if n % 3 else None}
    for n in range(100)
]
AVRO = {
    "type": "record",
    "name": "orders",
    "fields": [
        {"name": "order_id", "type": "long"},
        {"name": "customer", "type": "string"},
        {"name": "amount", "type": ["null", "string"]},
    ],
}
NDJSON, JSON, CSV = "application/x-ndjson", "application/json", "text/csv"
CONTAINER = "application/vnd.apache.avro"
MEMORY_BYTES_MAX = 16_000_000
LARGE_ROWS = 400_000  # 40 MB
HIGHEST = "5"  # to clear_refs: forget the peak of memory


@pytest.fixture(scope="module")
def service(
    surroundings: Surroundings, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Serving]:
    log = tmp_path_factory.mktemp("bodies") / "ingress.log"
    with serving("ingress", surroundings.environment, log) as service:
        yield service


@pytest.fixture(scope="module")
def admin(surroundings: Surroundings) -> KafkaAdmin:
    return make_admin(surroundings.kafka)


@pytest.fixture(scope="module")
def ingress(service: Serving) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=service.url, timeout=120) as client:
        yield client


@pytest.fixture
def known(surroundings: Surroundings, admin: KafkaAdmin, ingress: httpx2.Client) -> Known:
    return make_pipeline(surroundings, admin, ingress)


@pytest.fixture(scope="module")
def untouched(surroundings: Surroundings, admin: KafkaAdmin, ingress: httpx2.Client) -> Known:
    """A pipeline for requests of which nothing is written."""
    return make_pipeline(surroundings, admin, ingress)


def as_ndjson() -> bytes:
    return b"\n".join(json.dumps(row).encode() for row in ROWS)


def as_csv(delimiter: str = ",", *, header: bool = True) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter)
    writer.writerows([list(ROWS[0])] if header else [])
    writer.writerows(row.values() for row in ROWS)
    return text.getvalue().encode()


def as_avro(codec: str) -> bytes:
    out = io.BytesIO()
    fastavro.writer(out, AVRO, ROWS, codec=codec)
    return out.getvalue()


def send(
    ingress: httpx2.Client, known: Known, body: bytes, media_type: str, **more: str
) -> httpx2.Response:
    headers = {"Content-Type": media_type}
    if encoding := more.pop("packed", None):
        headers["Content-Encoding"] = encoding
    if key := more.pop("idempotency_key", None):
        headers["Idempotency-Key"] = key
    return ingress.post(known.path, content=body, headers=headers, params=more)


def standing(surroundings: Surroundings, known: Known) -> list[tuple[bytes | None, object]]:
    """Key and value of each record of the topic, by the number of the order."""
    found = [
        (message.key(), json.loads(message.value() or b"", parse_float=str))
        for message in read_to_end(surroundings.kafka, known.topic, range(PARTITIONS))
    ]
    return sorted(found, key=lambda pair: pair[1]["order_id"])


FORMS: list[tuple[str, bytes, str, dict[str, str]]] = [
    ("lines", as_ndjson(), NDJSON, {}),
    ("an array", json.dumps(ROWS).encode(), JSON, {}),
    ("objects in sequence", "".join(json.dumps(r, indent=2) for r in ROWS).encode(), JSON, {}),
    ("csv", as_csv(), CSV, {}),
    ("other csv", as_csv(";", header=False), CSV, {"delimiter": ";", "header": "absent"}),
    ("avro", as_avro("null"), CONTAINER, {}),
    ("packed blocks of avro", as_avro("deflate"), CONTAINER, {}),
    ("packed lines", gzip.compress(as_ndjson(), mtime=0), NDJSON, {"packed": "gzip"}),
    ("packed csv", zstandard.compress(as_csv()), CSV, {"packed": "zstd"}),
    ("packed avro", gzip.compress(as_avro("null"), mtime=0), CONTAINER, {"packed": "gzip"}),
]


@pytest.mark.parametrize(
    ("body", "media_type", "more"), [form[1:] for form in FORMS], ids=[form[0] for form in FORMS]
)
def test_each_format_brings_the_same_records_with_their_keys(
    surroundings: Surroundings,
    ingress: httpx2.Client,
    known: Known,
    body: bytes,
    media_type: str,
    more: dict[str, str],
) -> None:
    answer = send(ingress, known, body, media_type, **more)
    assert (answer.status_code, answer.json().get("rejected")) == (200, []), answer.text
    found = standing(surroundings, known)
    assert found == [(str(row["customer"]).encode(), row) for row in ROWS]
    spans = opened(surroundings, answer.json()["token"]).parts[0].spans
    assert sum(span.end - span.start for span in spans) == len(ROWS)


def test_a_raw_body_is_one_record(
    surroundings: Surroundings, ingress: httpx2.Client, known: Known
) -> None:
    body = b'{"order_id": 1,\n "customer": "ada"}'
    answer = send(ingress, known, body, "application/octet-stream")
    assert answer.json()["accepted"] == 1
    (message,) = read_to_end(surroundings.kafka, known.topic, range(PARTITIONS))
    assert (message.key(), message.value()) == (b"ada", body)
    keyed = send(ingress, known, body, "application/octet-stream", key="k")
    assert keyed.status_code == 422
    assert keyed.json()["errors"][0]["path"] == "query.key"


@pytest.mark.parametrize(
    ("body", "media_type", "packed", "slug"),
    [
        (as_csv() + b'"x', CSV, "", "body_not_csv"),
        (as_avro("null")[:-3], CONTAINER, "", "body_not_avro"),
        (json.dumps(ROWS).encode()[:-3], JSON, "", "body_not_json"),
        (gzip.compress(as_ndjson(), mtime=0)[:-3], NDJSON, "gzip", "body_not_packed"),
        (as_ndjson(), NDJSON, "zstd", "body_not_packed"),
        (as_csv(), CONTAINER, "", "body_not_avro"),
        (as_ndjson(), CSV, "", "body_not_csv"),
    ],
)
def test_of_a_body_that_is_wrong_at_its_end_nothing_is_written(
    surroundings: Surroundings,
    ingress: httpx2.Client,
    untouched: Known,
    body: bytes,
    media_type: str,
    packed: str,
    slug: str,
) -> None:
    answer = send(ingress, untouched, body, media_type, **({"packed": packed} if packed else {}))
    assert (answer.status_code, answer.json()["type"]) == (422, f"urn:waybill:problem:{slug}")
    assert [*read_to_end(surroundings.kafka, untouched.topic, range(PARTITIONS))] == []


def test_a_packed_request_with_a_key_is_carried_out_once(
    surroundings: Surroundings, ingress: httpx2.Client, known: Known
) -> None:
    body = gzip.compress(as_csv(), mtime=0)
    first, again = (
        send(ingress, known, body, CSV, packed="gzip", idempotency_key="k") for _ in range(2)
    )
    assert first.json() == again.json()
    assert again.headers["idempotent-replayed"] == "true"
    assert len(standing(surroundings, known)) == len(ROWS)
    other = send(ingress, known, body, NDJSON, packed="gzip", idempotency_key="k")
    assert other.json()["type"] == "urn:waybill:problem:key_reused"


def test_with_a_key_a_request_is_as_small_as_a_transaction_is_to_be(
    surroundings: Surroundings, ingress: httpx2.Client, untouched: Known
) -> None:
    body = b'{"order_id": 1}\n' * 10_001
    answer = send(ingress, untouched, body, NDJSON, idempotency_key="many")
    assert (answer.status_code, answer.json()["records_max"]) == (413, 10_000)
    large = b'{"order_id": 1, "customer": "%s"}\n' % (b"x" * 400_000) * 13
    answer = send(ingress, untouched, large, NDJSON, idempotency_key="large")
    assert (answer.status_code, answer.json().get("bytes_max")) == (413, 10_000_000), answer.text
    assert [*read_to_end(surroundings.kafka, untouched.topic, range(PARTITIONS))] == []


def test_a_gigabyte_of_zeros_is_refused_and_takes_no_memory(
    service: Serving, ingress: httpx2.Client, known: Known
) -> None:
    packer = zlib.compressobj(wbits=31)
    bomb = b"".join(packer.compress(bytes(1_000_000)) for _ in range(1_000)) + packer.flush()
    send(ingress, known, as_csv(), CSV)
    with Peak(service.pid) as peak:
        answer = send(ingress, known, bomb, NDJSON, packed="gzip")
    assert answer.status_code == 413, answer.text
    assert peak.more < MEMORY_BYTES_MAX, peak.more


def test_a_large_body_is_one_request_with_one_token_and_takes_little_memory(
    surroundings: Surroundings, service: Serving, ingress: httpx2.Client, known: Known
) -> None:
    """Its rows are spooled, and what Kafka answers is folded as it comes."""
    customer = "x" * 80
    rows = (b"%d,%s,1.5\n" % (n, customer.encode()) for n in range(LARGE_ROWS))
    body = b"order_id,customer,amount\n" + b"".join(rows)
    send(ingress, known, as_csv(), CSV)
    with Peak(service.pid) as peak:
        answer = send(ingress, known, body, CSV)
    assert (answer.status_code, answer.json()["accepted"]) == (200, LARGE_ROWS), answer.text
    assert peak.more < MEMORY_BYTES_MAX, peak.more
    (span,) = opened(surroundings, answer.json()["token"]).parts[0].spans
    assert span.end - span.start == LARGE_ROWS


class Peak:
    """How much more memory a process held at its highest than before."""

    def __init__(self, pid: int) -> None:
        self._folder = Path(f"/proc/{pid}")
        self._process = psutil.Process(pid)
        self.more = 0

    def __enter__(self) -> "Peak":
        (self._folder / "clear_refs").write_text(HIGHEST)
        self._before = self._process.memory_info().rss
        return self

    def __exit__(self, *exc: object) -> None:
        lines = (self._folder / "status").read_text().splitlines()
        (highest,) = (line.split()[1] for line in lines if line.startswith("VmHWM"))
        self.more = int(highest) * 1024 - self._before
