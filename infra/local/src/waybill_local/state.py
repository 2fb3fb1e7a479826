"""The state file of a stack (what runs, where, since when), and the lock of its one supervisor.

Never trusts a pid alone: a process counts only if it also started when the file says.
"""

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path

from waybill_local import postgres
from waybill_local.folders import find_state_folder
from waybill_local.processes import find

STATE_FILE = "state.json"
LOCK_FILE = "lock"


class StackPhase(StrEnum):
    """The phase of the whole stack, and of each process in it."""

    STARTING = "starting"
    READY = "ready"
    RESTARTING = "restarting"
    STOPPING = "stopping"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessState:
    """One process. `began`: when it started, by the system's clock. It and the pid identify it."""

    name: str
    pid: int
    began: float
    address: str
    version: str
    state: StackPhase


@dataclass(frozen=True, slots=True, kw_only=True)
class StackState:
    """A stack as its supervisor last saved it. `ports` are kept for the next start."""

    folder: Path
    phase: StackPhase
    version: str
    started_at: str
    supervisor_pid: int
    supervisor_began: float
    ports: Mapping[str, int] = field(default_factory=dict)
    processes: tuple[ProcessState, ...] = ()
    failure: str = ""
    """Why it ended although nobody asked it to; empty if it did not."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.ports['gateway']}"

    @property
    def kafka(self) -> str:
        return f"127.0.0.1:{self.ports['kafka']}"

    @property
    def redis(self) -> str:
        return f"redis://127.0.0.1:{self.ports['valkey']}/0"

    @property
    def postgres(self) -> postgres.Server | None:
        port = self.ports.get(postgres.NAME)
        return None if port is None else postgres.Server(self.folder / postgres.NAME, port)

    @property
    def running(self) -> bool:
        return find(self.supervisor_pid, self.supervisor_began) is not None


class AlreadyRunning(Exception):
    """A stack of this folder runs. `state` is None if it has not saved its state yet."""

    def __init__(self, state: StackState | None) -> None:
        super().__init__("the local stack of this folder is already running")
        self.state = state


def read_state(folder: Path) -> StackState | None:
    """Return the running stack of `folder` or of the nearest folder above; None if none runs."""
    found = find_state_folder(folder)
    state = load(found) if found else None
    return state if state and state.running else None


def last_failure(folder: Path) -> str:
    """Return why the last stack of `folder` or above ended by itself; empty if it did not."""
    found = find_state_folder(folder)
    state = load(found) if found else None
    return "" if state is None or state.running else state.failure


def load(state_folder: Path) -> StackState | None:
    """Return the saved state of a stack, running or not; None if no file can be read."""
    try:
        raw = json.loads((state_folder / STATE_FILE).read_text(encoding="utf-8"))
        processes = tuple(
            ProcessState(**{**process, "state": StackPhase(process["state"])})
            for process in raw.pop("processes")
        )
        fields = {**raw, "folder": Path(raw["folder"]), "phase": StackPhase(raw["phase"])}
        return StackState(**fields, processes=processes)
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        return None  # of another version, or damaged: treated as if there were none


def save(state: StackState) -> None:
    """Replace the file in one step, readable by its owner only."""
    target = state.folder / STATE_FILE
    partial = target.with_suffix(".part")
    fields = {**asdict(state), "folder": str(state.folder), "ports": dict(state.ports)}
    with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump(fields, file, indent=1)
    partial.replace(target)


@contextmanager
def only_supervisor(state_folder: Path) -> Iterator[None]:
    """Lock this folder for one supervisor. Raise AlreadyRunning if another one has the lock.

    The system releases the lock in whatever way this process ends.
    """
    with (state_folder / LOCK_FILE).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AlreadyRunning(load(state_folder)) from None
        yield
