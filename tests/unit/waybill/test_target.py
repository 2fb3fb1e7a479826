"""Which Waybill is talked to: as given, by environment, by the stack around, the default."""

import json
import os
from pathlib import Path

import pytest

from waybill import WaybillError
from waybill.target import DEFAULT_URL, find_target

PID_OF_NOBODY = 2**30  # more than Linux gives


def make_stack(folder: Path, port: int, **more: object) -> Path:
    state_file = folder / ".waybill" / "state.json"
    state_file.parent.mkdir()
    state_file.write_text(json.dumps({"ports": {"gateway": port}, **more}))
    return state_file


def test_what_is_given_goes_first(tmp_path: Path) -> None:
    target = find_target("http://there:1/", {"WAYBILL_URL": "http://here"}, tmp_path)
    assert (target.url, target.source) == ("http://there:1", "as given")


def test_the_environment_goes_before_the_stack(tmp_path: Path) -> None:
    make_stack(tmp_path, 9000)
    target = find_target(None, {"WAYBILL_URL": "http://here/"}, tmp_path)
    assert (target.url, target.source) == ("http://here", "from --url or WAYBILL_URL")


def test_the_nearest_stack_above_is_found(tmp_path: Path) -> None:
    make_stack(tmp_path, 9000)
    inner = tmp_path / "a"
    inner.mkdir()
    state_file = make_stack(inner, 9001)
    (inner / "b" / "c").mkdir(parents=True)
    target = find_target(None, {}, inner / "b" / "c")
    assert (target.url, target.source) == ("http://127.0.0.1:9001", f"from {state_file}")


@pytest.mark.parametrize(
    ("state", "guessed"),
    [
        ({"phase": "ready", "supervisor_pid": os.getpid()}, False),
        ({"phase": "stopped", "supervisor_pid": os.getpid()}, True),
        ({"phase": "ready", "supervisor_pid": PID_OF_NOBODY}, True),
    ],
)
def test_the_port_of_a_stack_that_does_not_run_is_a_guess(
    tmp_path: Path, state: dict[str, object], *, guessed: bool
) -> None:
    make_stack(tmp_path, 9000, **state)
    assert find_target(None, {}, tmp_path).guessed is guessed


def test_without_any_it_is_the_default(tmp_path: Path) -> None:
    assert find_target(None, {"WAYBILL_URL": ""}, tmp_path).url == DEFAULT_URL


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"ports": {"gateway": "x"}}'])
def test_a_damaged_state_file_is_named_with_the_way_out(tmp_path: Path, content: str) -> None:
    state_file = make_stack(tmp_path, 9000)
    state_file.write_text(content)
    with pytest.raises(WaybillError, match=r"state\.json names no gateway port.*`waybill up`"):
        find_target(None, {}, tmp_path)
