"""Files that are fetched while processes are killed and paused: each row once. And files that are
not to be fetched."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.conftest import Surroundings
from integration.ingress.fetched import LOOPBACK, Fetched, once, rows
from integration.ingress.files import FileServer, ServedFile, serving_files
from integration.ingress.keyed import Process, an_ingress
from waybill_shared.kafka.admin import KafkaAdmin


@pytest.fixture(scope="module")
def files() -> Iterator[FileServer]:
    with serving_files() as server:
        yield server


@pytest.fixture
def process(surroundings: Surroundings, tmp_path: Path) -> Iterator[Process]:
    with an_ingress(surroundings, tmp_path, **LOOPBACK) as started:
        yield started


@pytest.mark.parametrize("point", ["before_commit", "after_commit"])
@pytest.mark.parametrize("commit", [0, 1, 2, 3])
def test_killed_at_any_commit_another_one_goes_on_and_each_row_is_there_once(
    surroundings: Surroundings,
    files: FileServer,
    admin: KafkaAdmin,
    process: Process,
    tmp_path: Path,
    point: str,
    commit: int,
) -> None:
    """The first commit has no rows, and neither has the last."""
    fetched = Fetched(surroundings, admin, process.http)
    files.put("orders.json", ServedFile(rows(1_500)))
    place = f"{fetched.known.record.pipeline_uid}.connector.{point}"
    process.arm(place)
    fetched.declare({"name": "file", "url": files.url("orders.json")})
    for _ in range(commit):
        process.reached(place)
        process.arm(place)
        process.go_on(place)
    process.reached(place)
    os.kill(process.pid, signal.SIGKILL)
    with an_ingress(surroundings, tmp_path, **LOOPBACK) as successor:
        fetched.http = successor.http
        fetched.reaches("done", rows=1_500, records=1_500)
        assert fetched.written() == once(1_500)


def test_one_that_was_paused_adds_nothing_when_another_has_taken_over(
    surroundings: Surroundings,
    files: FileServer,
    admin: KafkaAdmin,
    process: Process,
    tmp_path: Path,
) -> None:
    fetched = Fetched(surroundings, admin, process.http)
    files.put("orders.json", ServedFile(rows(1_500)))
    place = f"{fetched.known.record.pipeline_uid}.connector.before_commit"
    process.arm(place)
    fetched.declare({"name": "file", "url": files.url("orders.json")})
    process.reached(place)
    process.arm(place)
    process.go_on(place)
    process.reached(place)
    os.kill(process.pid, signal.SIGSTOP)
    try:
        with an_ingress(surroundings, tmp_path, **LOOPBACK) as successor:
            fetched.http = successor.http
            fetched.reaches("done", rows=1_500, records=1_500)
            process.go_on(place)
            os.kill(process.pid, signal.SIGCONT)
            fetched.http = process.http
            fetched.reaches("done", rows=1_500, records=1_500)
            assert fetched.written() == once(1_500)
    finally:
        os.kill(process.pid, signal.SIGCONT)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files")


@pytest.fixture(scope="module")
def strict(
    surroundings: Surroundings, tmp_path_factory: pytest.TempPathFactory, folder: Path
) -> Iterator[Process]:
    """It fetches from public addresses and from `folder`, and from nowhere else."""
    settings = {"WAYBILL_CONNECTORS_FILES": str(folder)}
    with an_ingress(surroundings, tmp_path_factory.mktemp("strict"), **settings) as started:
        yield started


def test_a_file_of_a_folder(
    surroundings: Surroundings, admin: KafkaAdmin, strict: Process, folder: Path, tmp_path: Path
) -> None:
    (folder / "orders.json").write_bytes(rows(20))
    (tmp_path / "secret.json").write_bytes(rows(20))
    (folder / "link.json").symlink_to(tmp_path / "secret.json")
    fetched = Fetched(surroundings, admin, strict.http)
    fetched.declare(
        {"name": "file", "url": f"file://{folder}/orders.json"},
        {"name": "outside", "url": f"file://{tmp_path}/secret.json"},
        {"name": "link", "url": f"file://{folder}/link.json"},
        {"name": "none", "url": f"file://{folder}/none.json"},
    )
    fetched.reaches("done", rows=20)
    for name in ("outside", "link"):
        failed = fetched.reaches("failed", name)
        assert "not in the folder" in failed["connector"]["error"]
    assert fetched.reaches("failed", "none")["connector"]["error"] == "there is no such file"


def test_private_addresses_are_refused_however_they_are_written(
    surroundings: Surroundings, admin: KafkaAdmin, files: FileServer, strict: Process
) -> None:
    files.put("orders.json", ServedFile(rows(10)))
    hosts = ("127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433", "0x7f.1", "[::1]")
    fetched = Fetched(surroundings, admin, strict.http)
    fetched.declare(
        *(
            {"name": f"at{number}", "url": f"http://{host}:{files.port}/orders.json"}
            for number, host in enumerate(hosts)
        )
    )
    for number in range(len(hosts)):
        failed = fetched.reaches("failed", f"at{number}")
        assert "is not at a public address" in failed["connector"]["error"]
    assert files.files["/orders.json"].asked == []
