"""Files that are fetched into inputs, and a token for exactly what a connector has written."""

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from builders import applied
from integration.conftest import StartService, Surroundings
from integration.ingress.fetched import LOOPBACK, Fetched, once, rows
from integration.ingress.files import FileServer, ServedFile, serving_files
from integration.ingress.keyed import covered
from integration.ingress.test_records import NDJSON, make_pipeline, stored, write_record
from integration.waiting import eventually
from waybill_ingress.app.connectors import AT_ONCE
from waybill_shared.kafka.admin import KafkaAdmin


@pytest.fixture(scope="module")
def files() -> Iterator[FileServer]:
    with serving_files() as server:
        yield server


@pytest.fixture(scope="module")
def ingress(start_service: StartService) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=start_service("ingress", **LOOPBACK), timeout=120) as client:
        yield client


@pytest.fixture
def fetched(surroundings: Surroundings, admin: KafkaAdmin, ingress: httpx2.Client) -> Fetched:
    return Fetched(surroundings, admin, ingress)


def test_a_file_is_fetched_once_and_its_token_covers_its_rows(
    surroundings: Surroundings, files: FileServer, fetched: Fetched
) -> None:
    content = rows(2_500)
    files.put("orders.json", ServedFile(content))
    others = fetched.http.post(fetched.known.path, content=rows(3, 9_000), headers=NDJSON)
    others.raise_for_status()
    fetched.declare({"name": "file", "url": files.url("orders.json")})
    done = fetched.reaches("done", rows=2_500, records=2_500, dead=0, bytes=len(content))
    assert fetched.written() == once(2_500) + Counter(range(9_000, 9_003))
    places = {
        place
        for place, (_, value) in stored(surroundings, fetched.known.topic).items()
        if json.loads(value or b"{}")["order_id"] < 9_000
    }
    assert places <= covered(surroundings, done["token"])
    assert files.files["/orders.json"].asked == [None]


def test_a_connection_that_breaks_goes_on_where_it_was(files: FileServer, fetched: Fetched) -> None:
    content = rows(1_500)
    served = files.put("orders.json", ServedFile(content, cut_at=len(content) // 2))
    fetched.declare({"name": "file", "url": files.url("orders.json")})
    fetched.reaches("done", rows=1_500, records=1_500, bytes=len(content))
    assert fetched.written() == once(1_500)
    assert served.asked == [None, f"bytes={len(content) // 2}-"]


@pytest.mark.parametrize("version", ['"1"', None])
def test_a_server_that_sends_no_parts_sends_all_of_it_again(
    files: FileServer, fetched: Fetched, version: str | None
) -> None:
    """What cannot be known to be the same file is counted by rows."""
    content = rows(1_500)
    cut = len(content) - 50
    served = files.put("orders.json", ServedFile(content, version, parts=False, cut_at=cut))
    fetched.declare({"name": "file", "url": files.url("orders.json")})
    fetched.reaches("done", rows=1_500, records=1_500, bytes=len(content))
    assert fetched.written() == once(1_500)
    assert len(served.asked) == 2


def test_of_a_file_that_has_changed_only_later_rows_are_taken_and_it_is_said(
    files: FileServer, fetched: Fetched
) -> None:
    content = rows(6_000)
    served = files.put("orders.json", ServedFile(content, cut_at=len(content) - 50))

    def change() -> None:
        if served.asked:
            served.content, served.version = rows(6_100, 50_000), '"2"'

    served.before = change
    fetched.declare({"name": "file", "url": files.url("orders.json")})
    note = fetched.reaches("done", rows=6_100, records=6_100)["connector"]["note"]
    taken = int(note.removeprefix("the file has changed since its first ").partition(" ")[0])
    assert 1_000 <= taken < 6_000
    assert fetched.written() == once(taken) + Counter(range(50_000 + taken, 56_100))


def test_rows_that_are_no_records_are_counted_and_named_in_the_dead_letter_topic(
    files: FileServer, fetched: Fetched
) -> None:
    lines = rows(3) + b'{"order_id": "no"}\n\nnot json\n' + rows(2, 3)
    files.put("orders.json", ServedFile(lines))
    fetched.declare({"name": "file", "url": files.url("orders.json")})
    fetched.reaches("done", rows=7, records=5, dead=2)
    assert fetched.written() == once(5)
    letters = fetched.dead()
    assert [value for value, _ in letters] == [b'{"order_id": "no"}', b"not json"]
    assert [told["__connect.errors.exception.message"][:7] for _, told in letters] == [
        "line 4:",
        "not JSO",
    ]
    assert letters[0][1]["__connect.errors.topic"] == files.url("orders.json")
    assert letters[0][1]["waybill.reason"] == "malformed"
    assert int(letters[0][1]["waybill.at"]) > fetched.known.record.created_at + 1_000_000_000_000


def test_what_cannot_be_fetched_is_told_and_tried_again(
    files: FileServer, fetched: Fetched
) -> None:
    files.files.pop("/late.json", None)
    fetched.declare({"name": "file", "url": files.url("late.json")})
    failed = fetched.reaches("failed")
    assert failed["connector"]["error"] == "its server answers 404 Not Found"
    files.put("late.json", ServedFile(rows(10)))
    done = fetched.reaches("done", rows=10)
    assert done["connector"]["error"] is None


def test_of_a_file_that_is_broken_in_the_middle_what_stands_before_is_kept(
    files: FileServer, fetched: Fetched
) -> None:
    array = b"[" + b",".join(rows(1_200).splitlines()) + b", oh no"
    files.put("orders.json", ServedFile(array))
    fetched.declare({"name": "file", "url": files.url("orders.json")})
    failed = fetched.reaches("failed", rows=1_200)
    assert "the body is no JSON array" in failed["connector"]["error"]
    assert fetched.written() == once(1_200)


def test_formats_of_files(files: FileServer, fetched: Fetched) -> None:
    ten = [rows(10, begin) for begin in range(0, 40, 10)]
    changes = b"".join(b'{"insert": ' + row + b"}\n" for row in ten[2].splitlines())
    csv = "".join(["customer;order_id;amount\n", *(f"c;{n};1.5\n" for n in range(30, 40))])
    forms: dict[str, tuple[bytes, dict[str, Any]]] = {
        "packed.gz": (gzip.compress(ten[0]), {}),
        "array": (b"[" + b",".join(ten[1].splitlines()) + b"]", {}),
        "changes": (changes, {"updateFormat": "insert_delete"}),
        "csv": (csv.encode(), {"format": "csv", "csv": {"delimiter": ";"}}),
    }
    for name, (content, _) in forms.items():
        files.put(name, ServedFile(content))
    fetched.declare(
        *(
            {"name": name.partition(".")[0], "url": files.url(name), **more}
            for name, (_, more) in forms.items()
        )
    )
    for name in forms:
        fetched.reaches("done", name.partition(".")[0], rows=10, records=10)
    assert fetched.written() == once(40)


def test_another_url_is_another_connector_and_a_stopped_pipeline_fetches_nothing(
    surroundings: Surroundings, files: FileServer, fetched: Fetched
) -> None:
    files.put("one.json", ServedFile(rows(10)))
    files.put("two.json", ServedFile(rows(10, 10)))
    fetched.declare({"name": "file", "url": files.url("one.json")})
    fetched.reaches("done", rows=10)
    fetched.declare({"name": "file", "url": files.url("two.json")}, state="stopped")
    waiting = fetched.reaches("waiting", rows=0)
    assert covered(surroundings, waiting["token"]) == set()
    fetched.declare({"name": "file", "url": files.url("two.json")})
    fetched.reaches("done", rows=10)
    assert fetched.written() == once(20)


def test_a_connector_that_there_is_not_is_named(fetched: Fetched, files: FileServer) -> None:
    files.put("orders.json", ServedFile(rows(10)))
    fetched.declare({"name": "file", "url": files.url("orders.json")})
    fetched.reaches("done")
    question = {"pipeline": fetched.name, "input": "orders", "connector": "flie"}
    answer = fetched.http.post("/v1/tokens", json=question)
    assert (answer.status_code, answer.json()["title"]) == (404, "connector not found")
    assert answer.json()["hint"] == "did you mean 'file'? its connectors: file"
    path = f"/v0/pipelines/{fetched.name}/tables/ORDERS/connectors"
    assert fetched.http.get(f"{path}/file/completion_token").json().keys() == {"token"}
    refused = fetched.http.get(f"{path}/flie/completion_token")
    assert (refused.status_code, refused.json()["error_code"]) == (404, "UnknownInputEndpoint")


ODD = [
    (b"HTTP/1.1 200 OK\r\n\r\n" + rows(5), "nobody could know whether it is whole"),
    (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "nobody could know whether it is whole",
    ),
    (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n" + rows(5),
        "a chunk has a size that is none",
    ),
    (
        b"HTTP/1.1 302 OK\r\nLocation: http://[::1\r\nContent-Length: 0\r\n\r\n",
        "which is no URL",
    ),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345", "the connection broke at byte 5"),
]


def test_odd_servers_are_refused_with_the_reason(files: FileServer, fetched: Fetched) -> None:
    for number, (raw, _) in enumerate(ODD):
        files.put(f"odd{number}", ServedFile(b"", raw=raw))
    fetched.declare(*({"name": f"odd{n}", "url": files.url(f"odd{n}")} for n in range(len(ODD))))
    said = [
        fetched.reaches("failed", f"odd{number}", rows=0)["connector"]["error"]
        for number in range(len(ODD))
    ]
    assert [error in text for text, (_, error) in zip(said, ODD, strict=True)] == [True] * len(ODD)


def test_a_server_that_leads_where_nothing_may_be_fetched_is_not_followed(
    files: FileServer, fetched: Fetched
) -> None:
    files.put("moved", ServedFile(b"", status=302, location="http://169.254.169.254/latest"))
    files.put("again", ServedFile(b"", status=302, location="/again"))
    files.put("file", ServedFile(b"", status=302, location="file:///etc/passwd"))
    names = ("moved", "again", "file")
    fetched.declare(*({"name": name, "url": files.url(name)} for name in names))
    said = [fetched.reaches("failed", name)["connector"]["error"] for name in names]
    assert "169.254.169.254 is not at a public address" in said[0]
    assert "more than 5 times" in said[1]
    assert "which is not fetched" in said[2]


def test_servers_that_drip_hold_nobody_up(files: FileServer, fetched: Fetched) -> None:
    heads = (b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", b"HTTP/1.1 200 OK\r\nX: ")
    served = [
        files.put(f"drip{number}", ServedFile(b"", raw=head, drip=True))
        for number, head in enumerate(heads)
    ]
    files.put("orders.json", ServedFile(rows(10)))
    try:
        urls = [f"{files.url(f'drip{number % 2}')}?{number}" for number in range(AT_ONCE + 1)]
        fetched.declare(*({"name": f"drip{n}", "url": url} for n, url in enumerate(urls)))
        eventually(lambda: sum(len(each.asked) for each in served) >= AT_ONCE)
        fetched.declare({"name": "file", "url": files.url("orders.json")})
        fetched.reaches("done", rows=10)
    finally:
        for each in served:
            each.drip = False


def test_a_row_that_kafka_does_not_take_is_told(
    surroundings: Surroundings,
    admin: KafkaAdmin,
    ingress: httpx2.Client,
    files: FileServer,
) -> None:
    small = Fetched(surroundings, admin, ingress, config={"max.message.bytes": "2000"})
    content = rows(3) + b'{"order_id": 3, "customer": "' + b"x" * 5_000 + b'"}\n'
    files.put("large.json", ServedFile(content))
    small.declare({"name": "file", "url": files.url("large.json")})
    failed = small.reaches("failed", rows=0)
    assert "does not take a record" in failed["connector"]["error"]
    files.put("large.json", ServedFile(rows(4)))
    small.reaches("done", rows=4)
    assert small.written() == once(4)


def test_how_a_file_is_read_is_not_changed_in_the_middle(
    files: FileServer, fetched: Fetched
) -> None:
    lines = "".join(["1,c\n", *(f"{n},c\n" for n in range(2, 2_500)), '"oh no'])
    files.put("orders.csv", ServedFile(b"order_id,customer\n" + lines.encode()))
    connector = {"name": "file", "url": files.url("orders.csv"), "format": "csv"}
    fetched.declare({**connector, "csv": {"header": "absent"}})
    fetched.reaches("failed")
    fetched.declare(connector)

    def told() -> bool:
        error = fetched.told()["connector"]["error"]
        return "how the file is read was changed" in (error or "")

    eventually(told, saw=fetched.told)


def test_one_manifest_that_is_refused_today_holds_up_no_other(
    surroundings: Surroundings, admin: KafkaAdmin, ingress: httpx2.Client, files: FileServer
) -> None:
    old = make_pipeline(surroundings, admin, ingress).record
    manifest = f"{old.manifest.source}unknown: 1\n"
    write_record(
        surroundings, replace(old, manifest=applied(manifest), generation=old.generation + 1)
    )
    files.put("orders.json", ServedFile(rows(10)))
    fetched = Fetched(surroundings, admin, ingress)
    fetched.declare({"name": "file", "url": files.url("orders.json")})
    fetched.reaches("done", rows=10)
