"""Remembers accepted changes until a command has printed how they ended.

Each change is a file in a folder of the user, so that two shells never lose what the other one has
written. The files are private, but have no secret in them. Never asks Waybill anything.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from waybill.errors import WaybillError

KEPT_MAX = 100  # the newest of a pipeline: they say the most about it
PORTS = {"http": 80, "https": 443}
TO_RUN = frozenset({"start", "stop", "restart"})
TO_BE = frozenset({"apply", "delete"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """A change of a pipeline; `at` is when it was accepted, in seconds since 1970."""

    url: str
    pipeline: str
    operation: str
    action: str
    at: float

    def is_replaced_by(self, action: str) -> bool:
        """Return True if the pipeline is as that later change says, however this one ended.

        An apply or a delete says all of what a pipeline is. The others only say whether it runs: a
        restart that is done does not hide a manifest that was refused.
        """
        return action in TO_BE or (action in TO_RUN and self.action in TO_RUN)


def remember(change: Accepted, environment: Mapping[str, str]) -> None:
    """Write the change in one step, and delete the oldest ones if there are too many.

    Raises WaybillError if it cannot be written.
    """
    folder = _folder(environment)
    if folder is None:
        raise WaybillError("there is no home folder to remember it in: set XDG_STATE_HOME")
    before = stored_changes(change.url, change.pipeline, environment)
    if before and before[-1].at >= change.at:  # a clock was set back
        change = replace(change, at=before[-1].at + 1)
    path = folder / _name(change)
    partial = path.with_suffix(f".{os.getpid()}.part")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(partial, "w", encoding="utf-8", opener=_privately) as file:
            file.write(json.dumps(asdict(change)) + "\n")
        partial.replace(path)
    except OSError as error:
        raise WaybillError(f"{path} cannot be written: {error.strerror}") from error
    for oldest in stored_changes(change.url, change.pipeline, environment)[:-KEPT_MAX]:
        _remove(folder, oldest)


def stored_changes(url: str, pipeline: str, environment: Mapping[str, str]) -> tuple[Accepted, ...]:
    """Return the changes of this pipeline of this Waybill, the oldest first."""
    folder = _folder(environment)
    changes = [] if folder is None else _all(folder)
    return tuple(c for c in changes if c.pipeline == pipeline and _same(c.url, url))


def forget(change: Accepted, environment: Mapping[str, str]) -> None:
    folder = _folder(environment)
    if folder is not None:
        _remove(folder, change)


def _folder(environment: Mapping[str, str]) -> Path | None:
    """Return the folder; None for a user without a home, as in some containers."""
    try:
        root = environment.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    except RuntimeError:
        return None
    return Path(root) / "waybill" / "accepted"


def _name(change: Accepted) -> str:
    """Return the name of the file: a hash, because the id of an operation may be no safe file
    name."""
    known_by = f"{change.url} {change.operation}".encode()
    return f"{hashlib.sha256(known_by).hexdigest()[:32]}.json"


def _same(one: str, other: str) -> bool:
    """Return True if both URLs are spellings of one address."""
    return _address(one) == _address(other)


def _address(url: str) -> tuple[str, str, int | None, str]:
    parts = urlsplit(url)
    host = "127.0.0.1" if parts.hostname == "localhost" else parts.hostname or ""
    return parts.scheme, host, parts.port or PORTS.get(parts.scheme), parts.path.rstrip("/")


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
        found = Accepted(**json.loads(path.read_text(encoding="utf-8")))
        return replace(found, at=float(found.at))
    except FileNotFoundError:
        return None  # another shell has printed its end meanwhile
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
