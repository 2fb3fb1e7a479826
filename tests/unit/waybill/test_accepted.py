"""What is kept of a change that was accepted: where, how much, and for whom."""

import os
import stat
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
    found = accepted.remembered("http://a", "orders", environment)
    assert [c.operation for c in found] == [f"op-{number}" for number in range(3, KEPT_MAX + 3)]
    folder = tmp_path / "new" / "waybill" / "accepted"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(note.stat().st_mode) for note in folder.iterdir()} == {0o600}
    assert len(list(folder.iterdir())) == KEPT_MAX


def test_the_name_of_an_operation_leads_nowhere_else(tmp_path: Path) -> None:
    environment = {"XDG_STATE_HOME": str(tmp_path / "new")}
    accepted.remember(make_change(operation="../../../stray"), environment)
    assert list(tmp_path.rglob("*stray*")) == []
    (change,) = accepted.remembered("http://a", "orders", environment)
    accepted.forget(change, environment)
    assert accepted.remembered("http://a", "orders", environment) == ()


def test_a_folder_that_is_closed_to_us_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(path: Path) -> list[str]:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "listdir", closed)
    with pytest.raises(WaybillError, match="cannot be read: Permission denied"):
        accepted.remembered("http://a", "orders", {"XDG_STATE_HOME": str(tmp_path)})
