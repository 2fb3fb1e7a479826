"""Process groups: found by what their processes were started with, signalled, and ended."""

import logging
import os
import signal
import time
from collections.abc import Callable
from typing import Final

import psutil

logger = logging.getLogger(__name__)

POLL_S: Final = 0.02
SAY_S: Final = 30.0  # after SIGKILL; longer means a process that the kernel holds


def groups_with(argument: Callable[[str], bool]) -> set[int]:
    """The groups of all processes that were started with such an argument."""
    found = set()
    for process in psutil.process_iter():
        try:
            if any(argument(each) for each in process.cmdline()):
                found.add(os.getpgid(process.pid))
        except (ProcessLookupError, psutil.Error):
            continue
    return found


def signal_group(group: int, number: int, *, whole: bool) -> None:
    """To the whole group, or to its leader alone, who then stops Spark in good order."""
    send: Callable[[int, int], None] = os.killpg if whole else os.kill
    try:
        send(group, number)
    except ProcessLookupError:
        pass


def end_group(group: int) -> None:
    """Returns when no process of it is left, however long that takes."""
    say_at = time.monotonic() + SAY_S
    while not emptied(group):
        if time.monotonic() > say_at:
            logger.error("processes do not end", extra={"group": group, "pids": _members(group)})
            say_at = time.monotonic() + SAY_S


def emptied(group: int) -> bool:
    """Kill what is left of it; whether that was nothing."""
    if not _members(group):
        return True
    signal_group(group, signal.SIGKILL, whole=True)
    time.sleep(POLL_S)
    return False


def _members(group: int) -> list[int]:
    found = []
    for process in psutil.process_iter():
        try:
            if os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
        except (ProcessLookupError, psutil.NoSuchProcess):
            continue
    return found
