"""The key ring file: made once, private, never replaced."""

import base64
import json
import stat
from pathlib import Path

from waybill_shared.access.key_ring import ensure_key_ring


def test_key_ring_is_made_once_and_private(tmp_path: Path) -> None:
    made = tmp_path / "keys.json"
    assert ensure_key_ring(made)
    first = made.read_text()
    ring = json.loads(first)
    assert ring["active"] == 1
    assert len(base64.b64decode(ring["keys"]["1"])) == 32
    assert stat.S_IMODE(made.stat().st_mode) == 0o600
    assert not ensure_key_ring(made)
    assert made.read_text() == first


def test_half_written_ring_of_a_crash_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "keys.part").write_text('{"acti')
    ensure_key_ring(tmp_path / "keys.json")
    assert json.loads((tmp_path / "keys.json").read_text())["active"] == 1
