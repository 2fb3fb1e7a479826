"""The logs of a stack: found by name, read from their end, followed over a restart."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from waybill_local.logs import find_logs, follow, read


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / ".waybill"
    (home / "logs").mkdir(parents=True)
    (home / "logs" / "kafka.log").write_text("one\ntwo\nthree\n")
    for uid, name in (("u1", "orders"), ("u2", "kafka")):
        folder = home / "stage_runner" / uid
        folder.mkdir(parents=True)
        (folder / "spec.json").write_text(json.dumps({"pipeline": name}))
        (folder / "driver.log").write_text("driver\n")
    return home


def test_services_and_pipelines_are_found_by_name(home: Path) -> None:
    found = find_logs(home.parent / "below")
    assert found == {
        "kafka": home / "logs" / "kafka.log",
        "orders": home / "stage_runner" / "u1" / "driver.log",
    }
    assert list(read(found["kafka"])) == ["one", "two", "three"]
    assert list(read(home / "none.log")) == []


def test_what_is_written_is_followed_also_into_a_new_file(home: Path) -> None:
    log = home / "logs" / "kafka.log"

    def writes() -> Iterator[None]:
        with log.open("a") as file:
            file.write("four\nhal")
        yield
        with log.open("a") as file:
            file.write("f\n")
        log.rename(log.with_suffix(".log.1"))
        log.write_text("again\n")
        yield

    steps = writes()
    with closing(follow({"kafka": log}, pause=lambda _: next(steps))) as lines:
        assert [next(lines)[1] for _ in range(3)] == ["four", "half", "again"]


def test_a_log_that_is_still_to_come_is_waited_for(home: Path) -> None:
    log = home / "logs" / "status.log"
    steps = iter([lambda: log.write_text("begun\n")])
    with closing(follow({"status": log}, pause=lambda _: next(steps)())) as lines:
        assert next(lines) == ("status", "begun")
