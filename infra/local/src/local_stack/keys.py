"""Makes the key ring that seals tokens, once; never reads, changes or replaces one."""

import base64
import contextlib
import json
import os
import secrets
from pathlib import Path

KEYS_FILE = "keys.json"
KEY_BYTES = 32


def ensure_keys(state_folder: Path) -> Path:
    """The key ring of this folder, readable by its owner only. Tokens die with it."""
    target = state_folder / KEYS_FILE
    if target.exists():
        return target
    key = base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()
    partial = target.with_suffix(".part")
    with contextlib.suppress(FileNotFoundError):
        partial.unlink()
    with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump({"active": 1, "keys": {"1": key}}, file)
        file.flush()
        os.fsync(file.fileno())
    partial.rename(target)
    return target
