"""Finds process groups by the arguments of their processes, signals them, and ends them."""

import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Final

import psutil

from waybill_shared.contract.driver import DUMP_SIGNAL

logger = logging.getLogger(__name__)

JVM_DUMP_S: Final = 1.5  # what a JVM needs to write a hundred threads, on a loaded machine
POLL_S: Final = 0.02
SAY_S: Final = 30.0  # after SIGKILL; if it takes longer, the kernel keeps a process


def groups_with(argument: Callable[[str], bool]) -> set[int]:
    """Return the groups of all processes that were started with such an argument."""
    found = set()
    for process in psutil.process_iter():
        try:
            if any(argument(each) for each in process.cmdline()):
                found.add(os.getpgid(process.pid))
        except (ProcessLookupError, psutil.Error):
            continue
    return found


def signal_group(group: int, number: int, *, whole: bool) -> None:
    """Send a signal to the complete group, or only to its leader, which then stops Spark in good
    order.
    """
    send: Callable[[int, int], None] = os.killpg if whole else os.kill
    try:
        send(group, number)
    except ProcessLookupError:
        pass


def dump_threads(leader: int, *, jvm: Callable[[str], bool]) -> None:
    """Let the JVM of a group dump its threads, and then the leader, which is Python.

    One that somebody has stopped continues first: it could not do it. `jvm`: true of an argument
    of the JVM. Any Java writes the dump by itself at SIGQUIT; `jcmd` is in no small Java. Python's
    is last, so that the newest lines of a log have it whole: the other one is longer than these.
    """
    signal_group(leader, signal.SIGCONT, whole=True)
    for pid in _members(leader):
        if pid != leader and _has_argument(pid, jvm):
            signal_group(pid, signal.SIGQUIT, whole=False)
    last = threading.Timer(JVM_DUMP_S, signal_group, (leader, DUMP_SIGNAL), {"whole": False})
    last.daemon = True
    last.start()


def _has_argument(pid: int, argument: Callable[[str], bool]) -> bool:
    try:
        return any(argument(each) for each in psutil.Process(pid).cmdline())
    except psutil.Error:
        return False


def end_group(group: int) -> None:
    """End the group. Return when no process of it is left, however long that needs."""
    say_at = time.monotonic() + SAY_S
    while not is_empty(group):
        if time.monotonic() > say_at:
            logger.error("processes do not end", extra={"group": group, "pids": _members(group)})
            say_at = time.monotonic() + SAY_S


def is_empty(group: int) -> bool:
    """Kill what is left of the group. Return True if nothing was left."""
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
