"""Objects of a store that asks for a signature, fetched through a connection."""

import gzip
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import httpx2
import pytest

from integration.conftest import StartService, Surroundings
from integration.ingress.fetched import Fetched, once, rows
from integration.ingress.files import ServedFile, serving_files
from integration.ingress.objects import BUCKET, REGION, ObjectStore, cutting, serving_objects
from integration.ingress.test_records import MANIFEST
from waybill_shared import connections
from waybill_shared.kafka.admin import KafkaAdmin

STORE = """
{name}:
  kind: s3
  endpoint: {endpoint}
  region: {region}
  accessKey: {access_key}
  secretKey: {{file: {secret}}}
"""


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with serving_objects() as server:
        yield server


class Known:
    """The file of connections, and the secret beside it."""

    def __init__(self, folder: Path, store: ObjectStore) -> None:
        self.file, self.secret = folder / "connections.yaml", folder / "secret"
        self._store = store

    def say(self, name: str = "objects", endpoint: str | None = None) -> None:
        self.secret.write_text(self._store.secret_key)
        with self.file.open("a") as file:
            file.write(
                STORE.format(
                    name=name,
                    endpoint=endpoint or self._store.endpoint,
                    region=REGION,
                    access_key=self._store.access_key,
                    secret=self.secret,
                )
            )


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory, store: ObjectStore) -> Known:
    found = Known(tmp_path_factory.mktemp("known"), store)
    found.say()
    return found


@pytest.fixture(scope="module")
def ingress(start_service: StartService, known: Known) -> Iterator[httpx2.Client]:
    """No address is allowed but the public ones."""
    url = start_service("ingress", WAYBILL_CONNECTIONS_FILE=str(known.file))
    with httpx2.Client(base_url=url, timeout=120) as client:
        yield client


@pytest.fixture
def fetched(surroundings: Surroundings, admin: KafkaAdmin, ingress: httpx2.Client) -> Fetched:
    return Fetched(surroundings, admin, ingress)


def object_of(key: str, name: str = "objects") -> dict[str, str]:
    return {"name": "file", "url": f"s3://{BUCKET}/{quote(key)}", "connection": name}


@pytest.mark.parametrize("key", ["orders.json", "2026/äpfel & co/a+b=c?~*'(1)%.json", "/a//b.json"])
def test_an_object_is_fetched_once(store: ObjectStore, fetched: Fetched, key: str) -> None:
    content = rows(1_200)
    store.put(key, content)
    fetched.declare(object_of(key))
    done = fetched.reaches("done", rows=1_200, records=1_200, bytes=len(content))
    assert (fetched.written(), done["connector"]["size"]) == (once(1_200), len(content))


def test_a_packed_object_is_unpacked(store: ObjectStore, fetched: Fetched) -> None:
    store.put("packed", gzip.compress(rows(50)), ContentEncoding="gzip")
    fetched.declare(object_of("packed"))
    fetched.reaches("done", rows=50, records=50)
    assert fetched.written() == once(50)


def test_a_connection_that_breaks_goes_on_where_it_was(
    store: ObjectStore, known: Known, fetched: Fetched
) -> None:
    content = rows(20_000)
    store.put("large.json", content)
    with cutting(store.endpoint, len(content) // 2) as (endpoint, asked):
        known.say("cut", endpoint)
        fetched.declare(object_of("large.json", "cut"))
        fetched.reaches("done", rows=20_000, records=20_000, bytes=len(content))
    assert fetched.written() == once(20_000)
    assert [b"\r\nRange: bytes=" in head for head in asked] == [False, True]


def test_a_wrong_secret_is_told_and_the_right_one_is_taken_without_a_restart(
    store: ObjectStore, known: Known, fetched: Fetched
) -> None:
    store.put("kept.json", rows(10))
    known.secret.write_text("wrong")
    fetched.declare(object_of("kept.json"))
    failed = fetched.reaches("failed")
    assert "403 SignatureDoesNotMatch" in failed["connector"]["error"]
    assert store.secret_key not in str(failed)
    known.secret.write_text(store.secret_key)
    fetched.reaches("done", records=10)


def test_an_object_that_is_not_there_is_said_in_the_words_of_its_store(fetched: Fetched) -> None:
    fetched.declare(object_of("nothing.json"))
    assert "404 NoSuchKey" in fetched.reaches("failed")["connector"]["error"]


def test_an_unknown_connection_is_refused_before_anything_is_changed(
    ingress: httpx2.Client,
) -> None:
    manifest = MANIFEST.format(name="stores", topic="stores.in")
    connectors = "[{name: file, url: 's3://archive/a', connection: objets}]"
    text = manifest.replace("    key:", f"    connectors: {connectors}\n    key:")
    answer = ingress.put("/v1/pipelines/stores", content=text)
    (error,) = answer.json()["errors"]
    assert answer.status_code == httpx2.codes.UNPROCESSABLE_CONTENT
    assert error["path"] == "inputs.0.connectors.0.connection"
    assert error["message"] == "no connection is called 'objets'"
    assert error["hint"].startswith("did you mean 'objects'?")


def test_check_tries_a_store(
    store: ObjectStore,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    known = Known(tmp_path, store)
    known.say("good")
    known.say("closed", "http://127.0.0.1:1")
    monkeypatch.setattr("sys.argv", ["connections", "check", "--file", str(known.file)])
    assert connections.main() == 1
    told = capsys.readouterr()
    assert told.out == f"good: S3 at {store.endpoint}\n"
    assert told.err.startswith("connection closed: http://127.0.0.1:1 cannot be reached: ")
    known.secret.write_text("wrong")
    assert connections.main() == 1
    refused = f"connection good: {store.endpoint}: its server answers 403 SignatureDoesNotMatch"
    assert refused in capsys.readouterr().err


def test_a_store_that_leads_elsewhere_is_not_followed(known: Known, fetched: Fetched) -> None:
    """Else the signature, or what a manifest may not fetch, would come to another place."""
    with serving_files() as files:
        other = files.put("other", ServedFile(rows(3)))
        files.put(f"{BUCKET}/moved", ServedFile(b"", status=307, location=files.url("other")))
        known.say("moving", f"http://127.0.0.1:{files.port}")
        fetched.declare(object_of("moved", "moving"))
        assert "its server answers 307" in fetched.reaches("failed")["connector"]["error"]
    assert (other.asked, fetched.written()) == ([], once(0))
