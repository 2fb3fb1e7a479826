"""Waits for what the stack does by itself, and finds the processes that it started."""

import json
import os
from pathlib import Path

import psutil

from integration.waiting import eventually
from waybill import Client, NotFound
from waybill_local.stack import StackState

__all__ = ["drivers_of", "eventually", "gone", "group_of", "run_of"]


def gone(client: Client, name: str) -> bool:
    try:
        client.pipeline(name)
    except NotFound:
        return True
    return False


def drivers_of(stack: StackState, uid: str) -> list[psutil.Process]:
    """The driver of one pipeline with all that it has started, its JVM among them."""
    group = group_of(stack, uid)
    return [process for process in psutil.process_iter() if group and _group_of(process) == group]


def group_of(stack: StackState, uid: str) -> int | None:
    """Of the runner's own driver of that pipeline: its leader's id, while there is one."""
    return next((leader.pid for leader in leaders_of(stack, uid)), None)


def leaders_of(stack: StackState, uid: str) -> list[psutil.Process]:
    """Of all drivers that were given this pipeline and live."""
    homes = {str(home) for home in homes_of(stack, uid)}
    return [process for process in psutil.process_iter() if homes & {*_arguments(process)}]


def run_of(client: Client, stack: StackState, name: str) -> str:
    """The id of the run of a pipeline: another one after each start of it."""
    uid = str(client.pipeline(name).uid)
    return str(
        json.loads((stack.folder / "stage_runner" / uid / "spec.json").read_text())["run_id"]
    )


def homes_of(stack: StackState, uid: str) -> list[Path]:
    """What the drivers that were given this pipeline were started with."""
    notes = (Path(stack.folder) / "stage_runner" / "drivers").glob(f"*/runs/{uid}")
    return [note.parent.parent / "home.json" for note in notes]


def _arguments(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def _group_of(process: psutil.Process) -> int | None:
    try:
        return os.getpgid(process.pid)
    except ProcessLookupError:
        return None
