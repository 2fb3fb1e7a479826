"""What is kept of a change that was accepted: where, how much, and for whom."""

import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from waybill.cli import accepted
from waybill.cli.accepted import KEPT_MAX, Accepted
from waybill.errors import WaybillError

ID = "apply.orders.1a"


def make_change(
    url: str = "http://a", operation: str = ID, *, action: str = "apply", at: float = 0.0
) -> Accepted:
    return Accepted(url=url, pipeline="orders", operation=operation, action=action, at=at)


def test_what_is_remembered_is_private_and_bounded(tmp_path: Path) -> None:
    environment = {"XDG_STATE_HOME": str(tmp_path / "new")}
    for number in range(KEPT_MAX + 3):
        accepted.remember(make_change(operation=f"op-{number}", at=number), environment)
    found = accepted.stored_changes("http://a", "orders", environment)
    assert [c.operation for c in found] == [f"op-{number}" for number in range(3, KEPT_MAX + 3)]
    folder = tmp_path / "new" / "waybill" / "accepted"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(note.stat().st_mode) for note in folder.iterdir()} == {0o600}
    assert len(list(folder.iterdir())) == KEPT_MAX


def test_the_name_of_an_operation_leads_nowhere_else(tmp_path: Path) -> None:
    environment = {"XDG_STATE_HOME": str(tmp_path / "new")}
    accepted.remember(make_change(operation="../../../stray"), environment)
    assert list(tmp_path.rglob("*stray*")) == []
    (change,) = accepted.stored_changes("http://a", "orders", environment)
    accepted.forget(change, environment)
    assert accepted.stored_changes("http://a", "orders", environment) == ()


def test_a_folder_that_is_closed_to_us_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(path: Path) -> list[str]:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "listdir", closed)
    with pytest.raises(WaybillError, match="cannot be read: Permission denied"):
        accepted.stored_changes("http://a", "orders", {"XDG_STATE_HOME": str(tmp_path)})


def test_changes_of_other_pipelines_push_nothing_out(tmp_path: Path) -> None:
    environment = {"XDG_STATE_HOME": str(tmp_path)}
    accepted.remember(make_change(), environment)
    for number in range(KEPT_MAX + 3):
        other = replace(make_change(operation=f"op-{number}"), pipeline=f"other-{number}")
        accepted.remember(replace(other, at=number + 1.0), environment)
    assert len(accepted.stored_changes("http://a", "orders", environment)) == 1


def test_the_last_is_the_newest_though_the_clock_was_set_back(tmp_path: Path) -> None:
    environment = {"XDG_STATE_HOME": str(tmp_path)}
    accepted.remember(make_change(operation="first", at=100.0), environment)
    accepted.remember(make_change(operation="second", at=0.0), environment)
    found = accepted.stored_changes("http://a", "orders", environment)
    assert [c.operation for c in found] == ["first", "second"]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("http://127.0.0.1:8080", "http://localhost:8080/", True),
        ("https://Waybill.example", "https://waybill.example:443", True),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8081", False),
        ("http://a/one", "http://a/two", False),
    ],
)
def test_one_address_may_be_spelled_in_several_ways(
    tmp_path: Path, one: str, other: str, same: bool
) -> None:
    environment = {"XDG_STATE_HOME": str(tmp_path)}
    accepted.remember(make_change(one), environment)
    assert len(accepted.stored_changes(other, "orders", environment)) == int(same)


def test_a_broken_note_is_named(tmp_path: Path) -> None:
    environment = {"XDG_STATE_HOME": str(tmp_path)}
    accepted.remember(make_change(), environment)
    (note,) = (tmp_path / "waybill" / "accepted").iterdir()
    note.write_text(note.read_text().replace('"at": 0.0', '"at": null'))
    with pytest.raises(WaybillError, match="cannot be read"):
        accepted.stored_changes("http://a", "orders", environment)
