"""A process is held where a test wants it, and nowhere else."""

import threading
from pathlib import Path

import pytest

from integration.waiting import eventually
from waybill_shared.process.failpoints import FOLDER, REACHED, reach

POINT = "sink.before_commit"


def test_without_a_folder_nothing_is_held() -> None:
    reach(POINT)


def test_a_point_that_is_not_armed_is_passed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FOLDER, str(tmp_path))
    (tmp_path / "another").touch()

    reach(POINT)

    assert [path.name for path in tmp_path.iterdir()] == ["another"]


def test_an_armed_point_holds_until_its_mark_is_removed_and_only_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FOLDER, str(tmp_path))
    armed = tmp_path / POINT
    armed.touch()
    process = threading.Thread(target=reach, args=(POINT,), daemon=True)

    process.start()
    reached = tmp_path / (POINT + REACHED)
    eventually(reached.exists)
    assert process.is_alive()
    assert not armed.exists()
    reached.unlink()
    process.join(timeout=15.0)

    assert not process.is_alive()
    reach(POINT)
