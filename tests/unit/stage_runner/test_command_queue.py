"""Commands of one pipeline keep their order behind a check; those of others do not wait for it."""

from dataclasses import replace

import pytest

from message_builders import make_command
from waybill_shared.contract.events import Command
from waybill_stage_runner.core.pipelines.command_queue import (
    RETRY_MS,
    WAITING_MAX,
    CommandQueues,
    QueuedCommand,
)

A1, A2, A3 = (make_command("apply", id=f"a{number}") for number in (1, 2, 3))
B1 = replace(make_command("apply", id="b1"), pipeline_uid="b")


@pytest.fixture
def queues() -> CommandQueues:
    """a1 is being checked, a2 and a3 stand behind it."""
    queues = CommandQueues()
    queues.start_check(A1, 1)
    queues.add(A2, 2)
    queues.add(A3, 4)
    return queues


def freed(queues: CommandQueues) -> Command | None:
    waiting = queues.next_ready(0)
    return None if waiting is None else waiting.command


def test_nobody_waits_in_a_line_that_is_empty() -> None:
    queues = CommandQueues()
    assert not queues.must_wait(A1)
    assert queues.next_ready(0) is None
    assert list(queues) == []


def test_only_commands_of_the_same_pipeline_wait_behind_a_check(queues: CommandQueues) -> None:
    assert queues.must_wait(make_command("stop", id="a4"))
    assert not queues.must_wait(B1)
    assert not queues.must_wait(A1), "it is the first"


def test_nothing_is_free_while_the_first_is_being_checked(queues: CommandQueues) -> None:
    assert queues.next_ready(0) is None
    assert queues.checking == {"a1"}


def test_what_has_passed_is_free_with_its_offset_until_it_is_carried_out(
    queues: CommandQueues,
) -> None:
    assert queues.finish_check("a1") == A1
    assert queues.is_checked(A1)
    assert queues.checking == set()
    for _ in range(2):
        assert queues.next_ready(0) == QueuedCommand(command=A1, offset=1)


def test_commands_come_out_in_the_order_in_which_they_came(queues: CommandQueues) -> None:
    queues.finish_check("a1")
    came = []
    while (command := freed(queues)) is not None:
        came.append(command)
        queues.remove(command)
    assert came == [A1, A2, A3]
    assert not queues.must_wait(make_command("stop", id="a4"))


def test_one_that_waited_may_be_checked_itself_when_it_is_the_first(queues: CommandQueues) -> None:
    queues.finish_check("a1")
    queues.remove(A1)
    queues.start_check(A2, 2)
    assert queues.next_ready(0) is None
    assert [command.id for command in queues] == ["a2", "a3"], "it stands there once"
    queues.finish_check("a2")
    assert queues.next_ready(0) == QueuedCommand(command=A2, offset=2)


def test_what_has_passed_is_forgotten_when_it_leaves(queues: CommandQueues) -> None:
    queues.finish_check("a1")
    queues.remove(A1)
    assert not queues.is_checked(A1)


def test_one_line_does_not_wait_for_another(queues: CommandQueues) -> None:
    queues.start_check(B1, 3)
    queues.finish_check("b1")
    assert freed(queues) == B1
    queues.remove(B1)
    assert freed(queues) is None


def test_a_check_that_nobody_waits_for_is_nobodys(queues: CommandQueues) -> None:
    assert queues.finish_check("a2") is None, "it has not begun"
    assert queues.finish_check("b1") is None
    queues.finish_check("a1")
    assert queues.finish_check("a1") is None, "it was told before"


def test_only_the_first_can_leave(queues: CommandQueues) -> None:
    queues.remove(A2)
    queues.remove(B1)
    assert list(queues) == [A1, A2, A3]


def test_one_that_comes_again_keeps_its_place(queues: CommandQueues) -> None:
    queues.add(A2, 2)
    assert list(queues) == [A1, A2, A3]


def test_a_queue_has_room_for_so_many_commands_after_its_first(queues: CommandQueues) -> None:
    for number in range(WAITING_MAX - 2):
        queues.add(make_command("stop", id=f"b{number}"), 10 + number)
    one_more = make_command("stop", id="one more")
    assert not queues.has_room(one_more)
    assert queues.has_room(A3), "it is in the queue"
    assert queues.has_room(B1), "another pipeline has a queue of its own"
    queues.finish_check("a1")
    queues.remove(A1)
    assert queues.has_room(one_more)


def test_nothing_is_left_of_lines_that_are_cleared(queues: CommandQueues) -> None:
    queues.finish_check("a1")
    queues.start_check(B1, 3)
    queues.clear()
    assert list(queues) == []
    assert queues.checking == set()
    assert queues.next_ready(0) is None
    assert not queues.is_checked(A1)
    assert queues.finish_check("b1") is None


def test_only_the_queue_of_a_command_that_is_tried_again_waits(queues: CommandQueues) -> None:
    queues.finish_check("a1")
    assert queues.postpone(A1, 1, 100) == 0
    queues.add(B1, 3)
    assert queues.next_ready(101) == QueuedCommand(command=B1, offset=3)
    queues.remove(B1)

    assert queues.next_ready(99 + RETRY_MS) is None
    assert queues.next_ready(100 + RETRY_MS) == QueuedCommand(command=A1, offset=1)
    assert queues.postpone(A1, 1, 100 + RETRY_MS) == RETRY_MS, "it is tried for so long"
