"""Commands of one pipeline keep their order behind a check; those of others do not wait for it."""

from dataclasses import replace

import pytest

from builders import make_command
from waybill_shared.contract.events import Command
from waybill_stage_runner.core.pipelines.command_queue import Lines, Waiting

A1, A2, A3 = (make_command("apply", id=f"a{number}") for number in (1, 2, 3))
B1 = replace(make_command("apply", id="b1"), pipeline_uid="b")


@pytest.fixture
def lines() -> Lines:
    """a1 is being checked, a2 and a3 stand behind it."""
    lines = Lines()
    lines.check(A1, 1)
    lines.wait(A2, 2)
    lines.wait(A3, 4)
    return lines


def freed(lines: Lines) -> Command | None:
    waiting = lines.free()
    return None if waiting is None else waiting.command


def test_nobody_waits_in_a_line_that_is_empty() -> None:
    lines = Lines()
    assert not lines.must_wait(A1)
    assert lines.free() is None
    assert list(lines) == []


def test_only_commands_of_the_same_pipeline_wait_behind_a_check(lines: Lines) -> None:
    assert lines.must_wait(make_command("stop", id="a4"))
    assert not lines.must_wait(B1)
    assert not lines.must_wait(A1), "it is the first"


def test_nothing_is_free_while_the_first_is_being_checked(lines: Lines) -> None:
    assert lines.free() is None
    assert lines.checking == {"a1"}


def test_what_has_passed_is_free_with_its_offset_until_it_is_carried_out(lines: Lines) -> None:
    assert lines.checked("a1") == A1
    assert lines.passed(A1)
    assert lines.checking == set()
    for _ in range(2):
        assert lines.free() == Waiting(command=A1, offset=1)


def test_commands_come_out_in_the_order_in_which_they_came(lines: Lines) -> None:
    lines.checked("a1")
    came = []
    while (command := freed(lines)) is not None:
        came.append(command)
        lines.leave(command)
    assert came == [A1, A2, A3]
    assert not lines.must_wait(make_command("stop", id="a4"))


def test_one_that_waited_may_be_checked_itself_when_it_is_the_first(lines: Lines) -> None:
    lines.checked("a1")
    lines.leave(A1)
    lines.check(A2, 2)
    assert lines.free() is None
    assert [command.id for command in lines] == ["a2", "a3"], "it stands there once"
    lines.checked("a2")
    assert lines.free() == Waiting(command=A2, offset=2)


def test_what_has_passed_is_forgotten_when_it_leaves(lines: Lines) -> None:
    lines.checked("a1")
    lines.leave(A1)
    assert not lines.passed(A1)


def test_one_line_does_not_wait_for_another(lines: Lines) -> None:
    lines.check(B1, 3)
    lines.checked("b1")
    assert freed(lines) == B1
    lines.leave(B1)
    assert freed(lines) is None


def test_a_check_that_nobody_waits_for_is_nobodys(lines: Lines) -> None:
    assert lines.checked("a2") is None, "it has not begun"
    assert lines.checked("b1") is None
    lines.checked("a1")
    assert lines.checked("a1") is None, "it was told before"


def test_only_the_first_can_leave(lines: Lines) -> None:
    lines.leave(A2)
    lines.leave(B1)
    assert list(lines) == [A1, A2, A3]


def test_one_that_comes_again_keeps_its_place(lines: Lines) -> None:
    lines.wait(A2, 2)
    assert list(lines) == [A1, A2, A3]


def test_nothing_is_left_of_lines_that_are_cleared(lines: Lines) -> None:
    lines.checked("a1")
    lines.check(B1, 3)
    lines.clear()
    assert list(lines) == []
    assert lines.checking == set()
    assert lines.free() is None
    assert not lines.passed(A1)
    assert lines.checked("b1") is None
