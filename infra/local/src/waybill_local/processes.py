"""Starts child processes of the stack, waits until they are ready, and ends all they started.

Start children from the main thread only: Linux kills a child when the *thread* that made it ends.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from waybill_local import room
from waybill_local.errors import StackError, log_tail

POLL_S = 0.02
KILL_WAIT_S = 10.0
PR_SET_PDEATHSIG = 1

_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildSpec:
    """A process to run, and a way to see that it is ready.

    `wrong` returns within about a second: None if the process is ready, else what is missing.
    """

    name: str
    version: str
    address: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    wrong: Callable[[], str | None]
    ready_timeout_s: float
    stop_timeout_s: float
    restarts: bool
    fix: str
    stop_signal: int = signal.SIGTERM


@dataclass(slots=True, kw_only=True)
class Child:
    """One running process of a spec."""

    spec: ChildSpec
    process: subprocess.Popen[bytes]
    log: Path
    started: float = field(default_factory=time.monotonic)

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    @property
    def age_s(self) -> float:
        return time.monotonic() - self.started


class Interrupted(KeyboardInterrupt):
    """The person asked to stop while the stack was starting. No process of it is left."""


def start(spec: ChildSpec, logs: Path) -> Child:
    """Start `spec` in a session of its own, with its output in `<logs>/<name>.log`."""
    log = logs / f"{spec.name}.log"
    with log.open("ab") as output:
        process = subprocess.Popen(
            spec.command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(spec.environment),
            start_new_session=True,
            preexec_fn=die_with(os.getpid()),  # noqa: PLW1509 - system calls only
        )
    return Child(spec=spec, process=process, log=log)


def die_with(parent_pid: int, with_signal: int = signal.SIGKILL) -> Callable[[], None]:
    """Return a function for `preexec_fn`, by which a child gets a signal when its parent ends.

    The kernel sends it in whatever way the parent ends. On other systems than Linux, nobody does.
    """

    def prepare() -> None:
        if _libc is None:
            return
        _libc.prctl(PR_SET_PDEATHSIG, with_signal)
        if os.getppid() != parent_pid:  # the parent ended before the line above
            os._exit(1)

    return prepare


def wait_ready(
    children: Iterable[Child],
    *,
    interrupted: Callable[[], bool],
    on_ready: Callable[[Child], None],
) -> None:
    """Return when each child is ready. Raise StackError if one ends or takes too long.

    Raise Interrupted if `interrupted` returns True.
    """
    waiting = list(children)
    while waiting:
        for child in list(waiting):
            if interrupted():
                raise Interrupted
            if check_ready(child):
                waiting.remove(child)
                on_ready(child)
        if waiting:
            time.sleep(POLL_S)


def check_ready(child: Child) -> bool:
    """Return True if `child` is ready now. Raise StackError if it has ended or its time is up."""
    spec = child.spec
    if (code := child.process.poll()) is not None:
        raise StackError(
            f"{spec.name} ended while starting (exit code {code})",
            why=log_tail(child.log),
            fix=room.fix_of(child.log.parent, spec.fix),
        )
    wrong = spec.wrong()
    if wrong is None:
        return True
    if child.age_s > spec.ready_timeout_s:
        raise StackError(
            f"{spec.name} at {spec.address} is not ready after {spec.ready_timeout_s:.0f} s",
            why=f"{wrong}; {log_tail(child.log)}",
            fix=spec.fix,
        )
    return False


def stop(
    children: Sequence[Child],
    *,
    forced: Callable[[], bool],
    on_stopped: Callable[[Child, bool], None],
) -> None:
    """Stop `children`, the last started first, and end all that they started.

    A child is killed if it does not end in time, or if `forced` returns True. `on_stopped` gets
    each child, and True if it ended without that.
    """
    descendants = [process for child in children for process in _descendants(child.process.pid)]
    for child in reversed(children):
        with contextlib.suppress(ProcessLookupError):
            child.process.send_signal(child.spec.stop_signal)
    asked = time.monotonic()
    waiting = list(reversed(children))
    while waiting:
        for child in list(waiting):
            late = time.monotonic() - asked > child.spec.stop_timeout_s or forced()
            if child.alive and not late:
                continue
            graceful = not child.alive
            kill_group(child.process.pid)
            child.process.wait()
            waiting.remove(child)
            on_stopped(child, graceful)
        time.sleep(POLL_S)
    end_all(descendants)


def kill_group(group: int) -> None:
    """Kill what is left of a process group and wait until it is empty."""
    deadline = time.monotonic() + KILL_WAIT_S
    while time.monotonic() < deadline:
        try:
            os.killpg(group, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            return
        if not _group_members(group):
            return
        time.sleep(POLL_S)


def end_all(processes: Iterable[psutil.Process], *, grace_s: float = 1.0) -> None:
    """Wait a little for `processes` to end by themselves, then kill them."""
    late = wait_for_ends(processes, grace_s)
    for process in late:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    wait_for_ends(late, KILL_WAIT_S)


def wait_for_ends(processes: Iterable[psutil.Process], timeout_s: float) -> list[psutil.Process]:
    """Return the processes that still run after `timeout_s`; an empty list when all have ended."""
    deadline = time.monotonic() + timeout_s
    left = [process for process in processes if runs(process)]
    while left and time.monotonic() < deadline:
        time.sleep(POLL_S)
        left = [process for process in left if runs(process)]
    return left


def runs(process: psutil.Process) -> bool:
    """Return True if the process has not ended.

    A zombie has ended: its parent, or the first process of a container, may collect it late.
    """
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def find(pid: int, started: float) -> psutil.Process | None:
    """Return the process `pid` if it runs and started at `started`, so it is no later one."""
    try:
        process = psutil.Process(pid)
        same = abs(process.create_time() - started) < 1.0
    except psutil.NoSuchProcess:
        return None
    return process if same and runs(process) else None


def _descendants(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _group_members(group: int) -> list[psutil.Process]:
    members = []
    for process in psutil.process_iter():
        with contextlib.suppress(ProcessLookupError):
            if os.getpgid(process.pid) == group and runs(process):
                members.append(process)
    return members
