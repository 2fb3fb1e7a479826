"""The local stack for its callers: `up`, `run`, `down`, `read_state`.

Starts nothing at import, and prints nothing.
"""

import contextlib
import os
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import psutil

from waybill_local import detached
from waybill_local.errors import StackError
from waybill_local.folders import find_state_folder
from waybill_local.processes import end_all, find
from waybill_local.reports import STACK, Report, Reporter, ReportKind
from waybill_local.state import (
    AlreadyRunning,
    ProcessState,
    StackPhase,
    StackState,
    load,
    read_state,
    save,
)
from waybill_local.supervisor import Options, run, sweep

__all__ = [
    "AlreadyRunning",
    "Options",
    "ProcessState",
    "Report",
    "ReportKind",
    "Reporter",
    "StackError",
    "StackPhase",
    "StackState",
    "down",
    "read_state",
    "run",
    "up",
]

DOWN_TIMEOUT_S = 110.0  # longer than all its children's stop timeouts in a row


def up(
    folder: Path,
    report: Reporter,
    *,
    options: Options | None = None,
    tied: bool = False,
    environment: Mapping[str, str] = os.environ,
) -> StackState:
    """Start the stack of `folder` in the background and return when it is ready.

    `tied` stops it when the calling process ends; its processes get `environment`.
    Raises AlreadyRunning, StackError.
    """
    detached.start(folder, options or Options(), report, tied=tied, environment=environment)
    state = read_state(folder)
    if state is None:
        raise StackError(
            "the stack ended as soon as it was ready",
            why=f"see {folder / '.waybill' / 'logs'}",
            fix="`waybill up` without --detach shows more",
        )
    return state


def down(folder: Path, report: Reporter) -> bool:
    """Stop the stack of `folder` or of the nearest folder above. Return False if none ran.

    All its processes end, also if the supervisor was killed and could not stop them.
    """
    started = time.monotonic()
    home = find_state_folder(folder)
    state = load(home) if home else None
    if state is None:
        return False
    supervisor = find(state.supervisor_pid, state.supervisor_began)
    if supervisor:
        _end(supervisor)
    left = sweep(load(state.folder) or state)
    if supervisor is None and not left:
        return False
    _mark_stopped(state)
    took = time.monotonic() - started
    text = f"state kept in {state.folder}"
    report(Report(kind=ReportKind.STOPPED, name=STACK, seconds=took, text=text))
    return True


def _end(supervisor: psutil.Process) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        supervisor.terminate()
    end_all([supervisor], grace_s=DOWN_TIMEOUT_S)  # if it is killed, its children end with it
    with contextlib.suppress(ChildProcessError):
        os.waitpid(supervisor.pid, os.WNOHANG)


def _mark_stopped(state: StackState) -> None:
    latest = load(state.folder) or state
    if latest.phase is not StackPhase.STOPPED:
        save(replace(latest, phase=StackPhase.STOPPED, processes=()))
