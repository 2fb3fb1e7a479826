"""Changes that were accepted, and whose end nobody was told yet: in a folder of the user's.

A file for each, so that two shells never lose what the other one has written; private, but it holds
no secret. Never asks Waybill anything.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from waybill.errors import WaybillError

KEPT_MAX = 100  # the newest: who leaves more without a look will not come back for the oldest
TO_RUN = frozenset({"start", "stop", "restart"})
TO_BE = frozenset({"apply", "delete"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """A change of a pipeline; `at`, in seconds since 1970, is when it was told as accepted."""

    url: str
    pipeline: str
    operation: str
    action: str
    at: float

    def replaced_by(self, action: str) -> bool:
        """Whether the pipeline is as that later change says, whatever became of this one.

        An apply or a delete says all of what a pipeline is. The others only say whether it runs:
        a restart that is done hides no manifest that was refused.
        """
        return action in TO_BE or (action in TO_RUN and self.action in TO_RUN)


def remember(change: Accepted, environment: Mapping[str, str]) -> None:
    """Written in one step; the oldest of too many go. Raises WaybillError when it cannot be."""
    folder = _folder(environment)
    if folder is None:
        raise WaybillError("there is no home folder to remember it in: set XDG_STATE_HOME")
    path = folder / _name(change)
    partial = path.with_suffix(f".{os.getpid()}.part")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(partial, "w", encoding="utf-8", opener=_privately) as file:
            file.write(json.dumps(asdict(change)) + "\n")
        partial.replace(path)
    except OSError as error:
        raise WaybillError(f"{path} cannot be written: {error.strerror}") from error
    for oldest in _all(folder)[:-KEPT_MAX]:
        _remove(folder, oldest)


def remembered(url: str, pipeline: str, environment: Mapping[str, str]) -> tuple[Accepted, ...]:
    """Of this pipeline of this Waybill, the oldest first."""
    folder = _folder(environment)
    changes = [] if folder is None else _all(folder)
    return tuple(c for c in changes if (c.url, c.pipeline) == (url, pipeline))


def forget(change: Accepted, environment: Mapping[str, str]) -> None:
    folder = _folder(environment)
    if folder is not None:
        _remove(folder, change)


def _folder(environment: Mapping[str, str]) -> Path | None:
    """None for a user without a home, as in some containers."""
    try:
        root = environment.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    except RuntimeError:
        return None
    return Path(root) / "waybill" / "accepted"


def _name(change: Accepted) -> str:
    """What an operation is called is not ours to trust as the name of a file."""
    known_by = f"{change.url} {change.operation}".encode()
    return f"{hashlib.sha256(known_by).hexdigest()[:32]}.json"


def _privately(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _all(folder: Path) -> list[Accepted]:
    try:
        paths = [folder / name for name in os.listdir(folder) if name.endswith(".json")]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise WaybillError(f"{folder} cannot be read: {error.strerror}") from error
    changes = (_read(path) for path in paths)
    return sorted((c for c in changes if c is not None), key=lambda change: change.at)


def _read(path: Path) -> Accepted | None:
    try:
        return Accepted(**json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None  # another shell was told its end meanwhile
    except (OSError, ValueError, TypeError) as error:
        raise WaybillError(
            f"{path} cannot be read ({type(error).__name__}: {error}): delete it"
        ) from error


def _remove(folder: Path, change: Accepted) -> None:
    path = folder / _name(change)
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise WaybillError(f"{path} cannot be deleted: {error.strerror}") from error
