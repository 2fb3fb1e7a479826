"""The folders of the local stack: downloads in the user's cache, state in `.waybill`.

Knows paths only. It makes folders, but reads and writes no files there.
"""

import os
import shutil
from pathlib import Path

from waybill_local.errors import StackError

STATE_FOLDER = ".waybill"


def cache_folder() -> Path:
    """Return the folder of downloads and archives, which all projects of this user share."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "waybill"


def state_folder(folder: Path) -> Path:
    """Return the state folder that `up` uses when it is called in `folder`."""
    return folder.resolve() / STATE_FOLDER


def find_state_folder(folder: Path) -> Path | None:
    """Return the nearest state folder, from `folder` upwards; None if there is none."""
    start = folder.resolve()
    for candidate in (start, *start.parents):
        if (candidate / STATE_FOLDER).is_dir():
            return candidate / STATE_FOLDER
    return None


def make_private(folder: Path) -> Path:
    """Make `folder`, readable by its owner only, and return it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _refuse_foreign(folder)
        folder.chmod(0o700)
    except OSError as error:
        raise StackError(
            f"folder {folder} cannot be used",
            why=error.strerror or str(error),
            fix=f"see that you may write to {folder.parent} and that no file is in its place",
        ) from error
    return folder


def _refuse_foreign(folder: Path) -> None:
    """Raise if `folder` belongs to another user.

    With files of two users in one folder, one of them sooner or later cannot use it.
    """
    owner = folder.stat().st_uid
    if owner != os.getuid():
        raise StackError(
            f"folder {folder} belongs to another user",
            why=f"its owner has the id {owner}, you have {os.getuid()}",
            fix="work in a folder of your own, or let its owner delete it",
        )


def free_bytes(folder: Path) -> int:
    """Return how many bytes are free on the disk where `folder` is, or will be."""
    there = next(place for place in (folder, *folder.parents) if place.exists())
    return shutil.disk_usage(there).free
