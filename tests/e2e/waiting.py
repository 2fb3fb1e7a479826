"""Waits for what the stack does by itself, and finds the processes that it started."""

import os
from pathlib import Path

import psutil

from integration.waiting import eventually
from local_stack.stack import StackState

__all__ = ["drivers_of", "eventually"]


def drivers_of(stack: StackState, uid: str) -> list[psutil.Process]:
    """The driver of one pipeline and its JVM, found through the file that the runner keeps."""
    group = int((Path(stack.folder) / "stage_runner" / uid / "group").read_text())
    return [process for process in psutil.process_iter() if _group_of(process) == group]


def _group_of(process: psutil.Process) -> int | None:
    try:
        return os.getpgid(process.pid)
    except ProcessLookupError:
        return None
