"""What a URL is connected to: the address that was checked, and no other."""

import gzip
import socket
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest

from waybill_ingress.adapters.files import download, patience
from waybill_ingress.adapters.files.download import FileFetcher, FileReading
from waybill_ingress.adapters.files.web import _redirect_target
from waybill_ingress.app.connector_ports import FetchFailed
from waybill_ingress.core.connectors.limits import FetchLimits
from waybill_shared.contract.addresses import allowed
from waybill_shared.contract.manifest.connectors import FileConnector

PUBLIC, OTHER = "93.184.216.34", "93.184.216.35"
CONTENT = b'{"a": 1}\n'
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(CONTENT), CONTENT)


class Names:
    """Answers each question for the address of a host with the next of `told`."""

    def __init__(self, *told: list[str]) -> None:
        self._told = iter(told)
        self.asked: list[str] = []

    def __call__(self, host: str, port: int, **more: object) -> list[tuple[object, ...]]:
        self.asked.append(host)
        kind = socket.SOCK_STREAM
        return [(socket.AF_INET, kind, 6, "", (each, port)) for each in next(self._told)]


class Network:
    """Connects every address to a server of its own that gives the same answer."""

    def __init__(self, answer: bytes = ANSWER) -> None:
        self.reached: list[str] = []
        self.servers: list[socket.socket] = []
        self.ends = True
        self.next: list[bytes] = []
        self.answer = answer

    def __call__(self, address: tuple[str, int], timeout: float) -> socket.socket:
        self.reached.append(address[0])
        ours, theirs = socket.socketpair()
        theirs.sendall(self.next.pop(0) if self.next else self.answer)
        if self.ends:
            theirs.shutdown(socket.SHUT_WR)
        self.servers.append(theirs)
        return ours


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> Iterator[Network]:
    found = Network()
    monkeypatch.setattr(socket, "create_connection", found)
    yield found
    for server in found.servers:
        server.close()


def fetch(url: str, *allow: str, files: Path | None = None) -> FileReading:
    limits = FetchLimits(allowed=allowed(",".join(allow)), files=files, bytes_max=1_000, time_s=30)
    return FileFetcher(limits, None).fetch(FileConnector(name="file", url=url), Event())


def read(reading: FileReading) -> bytes:
    try:
        return b"".join(reading.pieces())
    finally:
        reading.close()


def test_a_name_is_looked_up_once_and_the_checked_address_is_connected_to(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = Names([PUBLIC], ["127.0.0.1"])
    monkeypatch.setattr(socket, "getaddrinfo", names)
    assert read(fetch("http://rebinding.example/a.json")) == CONTENT
    assert (names.asked, network.reached) == (["rebinding.example"], [PUBLIC])


def test_a_name_with_one_private_address_is_refused(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", Names([PUBLIC, "10.0.0.1"]))
    with pytest.raises(FetchFailed, match=r"two\.example is not at a public address") as refused:
        fetch("http://two.example/a.json")
    assert "10.0.0.1" not in str(refused.value), "nobody is to list the names of our network"
    assert network.reached == []


def test_where_a_redirect_leads_is_looked_up_and_checked_again(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", Names([PUBLIC], ["169.254.169.254"]))
    moved = b"HTTP/1.1 302 Found\r\nLocation: /again\r\nContent-Length: 0\r\n\r\n"
    network.answer = moved
    with pytest.raises(FetchFailed, match=r"moving\.example is not at a public address"):
        fetch("http://moving.example/a.json")
    assert network.reached == [PUBLIC]


def test_a_host_that_is_named_is_not_checked(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", Names(["10.0.0.1"]))
    assert read(fetch("http://Files.internal:8080/a", "files.internal")) == CONTENT


def test_a_server_that_is_too_slow_is_left(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that sends a byte now and then, else nobody could fetch meanwhile."""
    for name, seconds in (("LOOK_S", 0.01), ("SLOW_S", 0.3)):
        monkeypatch.setattr(patience, name, seconds)
    monkeypatch.setattr(socket, "getaddrinfo", Names([PUBLIC]))
    network.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"
    network.ends = False
    slow = fetch("http://slow.example/a.json")
    with pytest.raises(FetchFailed, match="slower than 1000 bytes a second"):
        read(slow)


CHUNKED = b'HTTP/1.1 200 OK\r\nETag: "1"\r\nTransfer-Encoding: chunked\r\n\r\n'
PART = b'HTTP/1.1 206 OK\r\nETag: "1"\r\nContent-Range: bytes 4-11/12\r\nContent-Length: 8\r\n\r\n'


def test_a_part_that_is_cut_off_is_not_the_end_of_a_file_that_came_in_chunks(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(socket, "getaddrinfo", Names(*([[PUBLIC]] * 3)))
    rest = b'HTTP/1.1 206 OK\r\nETag: "1"\r\nContent-Range: bytes 8-11/12\r\n'
    network.next = [
        CHUNKED + b"4\r\nabcd\r\n",
        PART + b"efgh",
        rest + b"Content-Length: 4\r\n\r\nijkl",
    ]
    assert read(fetch("http://cutting.example/a")) == b"abcdefghijkl"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (CHUNKED + b"4\r\nabcd\r\n0", "size that is none|does not say"),
        (CHUNKED.replace(b"chunked\r", b"chunked \r") + b"4\r\nabcd\r\n0\r\n\r\n", "nobody could"),
        (
            b"HTTP/1.0 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + gzip.compress(CONTENT, mtime=0),
            "nobody could",
        ),
    ],
)
def test_what_nobody_could_know_to_be_whole_is_refused(
    network: Network, monkeypatch: pytest.MonkeyPatch, answer: bytes, reason: str
) -> None:
    monkeypatch.setattr(download, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(socket, "getaddrinfo", Names(*([[PUBLIC]] * 9)))
    network.answer = answer
    with pytest.raises(FetchFailed, match=reason):
        read(fetch("http://odd.example/a"))


def test_a_part_that_is_packed_otherwise_is_of_another_file(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(socket, "getaddrinfo", Names([PUBLIC], [PUBLIC]))
    packed = PART.replace(b"206 OK", b"206 OK\r\nContent-Encoding: gzip")
    network.next = [CHUNKED + b"4\r\nabcd\r\n", packed + b"efghijkl"]
    with pytest.raises(FetchFailed, match="another one than a moment ago"):
        read(fetch("http://packing.example/a"))


def test_from_https_nothing_leads_to_http() -> None:
    assert _redirect_target("http://a/b", "https://c/d") == "https://c/d"
    assert _redirect_target("https://a/b", "../é") == "https://a/%C3%A9"
    with pytest.raises(FetchFailed, match="which is not fetched"):
        _redirect_target("https://a/b", "http://c/d?secret")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "files"
    found.mkdir()
    (found / "a b.json").write_bytes(CONTENT)
    (tmp_path / "other.json").write_bytes(CONTENT)
    return found


def test_a_file_is_read_below_its_folder_only(folder: Path) -> None:
    assert read(fetch(f"file://{folder}/a%20b.json", files=folder)) == CONTENT
    for url in (f"file://{folder}/../other.json", f"file://{folder}/..%2fother.json"):
        with pytest.raises(FetchFailed, match="not in the folder"):
            fetch(url, files=folder)
    with pytest.raises(FetchFailed, match="there is no such file"):
        fetch(f"file://{folder}", files=folder)
    with pytest.raises(FetchFailed, match="names no folder"):
        fetch(f"file://{folder}/a%20b.json")
