"""The state file: who runs, and how a stale one is told from a true one."""

import stat
from dataclasses import replace
from pathlib import Path

import pytest

from waybill_local.state import (
    STATE_FILE,
    AlreadyRunning,
    StackState,
    load,
    only_supervisor,
    read_state,
    save,
)


def test_state_is_read_back_as_it_was_written(state: StackState) -> None:
    save(state)
    assert load(state.folder) == state
    assert stat.S_IMODE((state.folder / STATE_FILE).stat().st_mode) == 0o600


def test_addresses_follow_from_the_ports(state: StackState) -> None:
    assert state.url == "http://127.0.0.1:8180"
    assert state.kafka == "127.0.0.1:9192"
    assert state.redis == "redis://127.0.0.1:6479/0"


def test_stack_is_found_from_a_folder_below(state: StackState) -> None:
    save(state)
    below = state.folder.parent / "some" / "where"
    below.mkdir(parents=True)
    assert read_state(below) == state


def test_without_a_state_folder_nothing_runs(tmp_path: Path) -> None:
    assert read_state(tmp_path) is None


def test_process_that_took_over_the_number_is_not_the_supervisor(state: StackState) -> None:
    save(replace(state, supervisor_began=state.supervisor_began - 60))
    assert read_state(state.folder.parent) is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"processes": []}', '{"processes": [{"x": 1}]}'])
def test_damaged_file_is_as_good_as_none(state: StackState, text: str) -> None:
    (state.folder / STATE_FILE).write_text(text)
    assert load(state.folder) is None


def test_second_supervisor_is_told_of_the_first(state: StackState) -> None:
    save(state)
    with only_supervisor(state.folder):
        with pytest.raises(AlreadyRunning) as raised, only_supervisor(state.folder):
            pass
        assert raised.value.state == state
    with only_supervisor(state.folder):
        pass
