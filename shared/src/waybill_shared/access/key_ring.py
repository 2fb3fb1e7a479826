"""Makes the key ring that seals tokens, once; never reads, changes or replaces one."""

import base64
import contextlib
import json
import os
import secrets
from pathlib import Path

from waybill_shared.contract.sealing import KEY_BYTES


def ensure_key_ring(target: Path) -> bool:
    """Whether it was made now, readable by its owner only. Tokens die with it."""
    if target.exists():
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    key = base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()
    partial = target.with_suffix(".part")
    with contextlib.suppress(FileNotFoundError):
        partial.unlink()
    with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump({"active": 1, "keys": {"1": key}}, file)
        file.flush()
        os.fsync(file.fileno())
    partial.rename(target)
    return True
