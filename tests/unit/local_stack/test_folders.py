"""What is said of a state folder that cannot be used."""

import os
from pathlib import Path

import pytest

from waybill_local.errors import StackError
from waybill_local.folders import free_bytes, make_private


def test_a_file_in_the_place_of_the_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / ".waybill").touch()
    with pytest.raises(StackError, match="file is in its place"):
        make_private(tmp_path / ".waybill")
    with pytest.raises(StackError, match=r"logs cannot be used"):
        make_private(tmp_path / ".waybill" / "logs")


def test_the_folder_of_another_user_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_private(tmp_path / ".waybill")
    folder.chmod(0o755)
    monkeypatch.setattr(os, "getuid", lambda: folder.stat().st_uid + 1)
    with pytest.raises(StackError, match="belongs to another user"):
        make_private(folder)
    assert folder.stat().st_mode & 0o777 == 0o755


def test_free_space_is_told_of_folders_that_are_still_to_come(tmp_path: Path) -> None:
    assert free_bytes(tmp_path / "a" / "b") == pytest.approx(free_bytes(tmp_path), rel=0.01)
