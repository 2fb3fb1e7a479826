"""Where the local stack keeps things: downloads in the user's cache, state in `.waybill`.

Knows paths only; never reads or writes what lies there, save to make a folder.
"""

import os
from pathlib import Path

STATE_FOLDER = ".waybill"


def cache_folder() -> Path:
    """Downloads and archives that every project of this user shares."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "waybill"


def state_folder(folder: Path) -> Path:
    """The state folder that `up` uses when it is called in `folder`."""
    return folder.resolve() / STATE_FOLDER


def find_state_folder(folder: Path) -> Path | None:
    """The nearest state folder, from `folder` upwards."""
    start = folder.resolve()
    for candidate in (start, *start.parents):
        if (candidate / STATE_FOLDER).is_dir():
            return candidate / STATE_FOLDER
    return None


def make_private(folder: Path) -> Path:
    """Make `folder`, readable by its owner only, and answer it."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    return folder
