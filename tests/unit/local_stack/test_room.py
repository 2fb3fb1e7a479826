"""A full disk is said to be the reason, before a start and when something has ended on it."""

from pathlib import Path

import pytest

from waybill_local import room, shown
from waybill_local.errors import StackError
from waybill_local.java import Java


def test_a_start_on_a_full_disk_is_refused_with_what_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room.require(tmp_path, 1, "a stack")
    monkeypatch.setattr(room, "free_bytes", lambda _: 20_000_000)
    with pytest.raises(StackError, match="too full for a stack") as raised:
        room.require(tmp_path, room.STATE_BYTES_MIN, "a stack")
    assert raised.value.why == "20 MB are free, 500 MB are needed"


def test_what_ends_on_a_full_disk_needs_room_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert room.fix_of(tmp_path, "read its log") == "read its log"
    monkeypatch.setattr(room, "free_bytes", lambda _: 1_000_000)
    assert "is full (1 MB free): make room" in room.fix_of(tmp_path, "read its log")


def test_no_archive_is_begun_on_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(room, "free_bytes", lambda _: 20_000_000)
    shown.make_archive(Java(path=Path("java"), version="17", bundled=False))
    said = capsys.readouterr().out
    assert "drivers start more slowly" in said
    assert "20 MB are free, 200 MB are needed" in said
