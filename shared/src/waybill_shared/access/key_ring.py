"""Makes the key ring that seals tokens, once, and reads it; never changes or replaces one."""

import base64
import contextlib
import json
import os
import secrets
from pathlib import Path

from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.contract.sealing import KEY_BYTES, KeyRing


def ensure_key_ring(target: Path) -> bool:
    """Make the key ring if it is missing, readable by its owner only.

    Return True if it was made now. Tokens can be opened only as long as their key ring exists.
    """
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


def load_key_ring(path: Path) -> KeyRing:
    try:
        raw = json.loads(path.read_text())
        keys = {int(key_id): base64.b64decode(key) for key_id, key in raw["keys"].items()}
        ring = KeyRing(active=int(raw["active"]), keys=keys)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        hint = "`waybill up` makes one; in production mount it from a secret"
        raise UserError(
            [Problem(message=f"the token key ring {path} cannot be read: {error}", hint=hint)]
        ) from error
    bad = [key_id for key_id, key in keys.items() if len(key) != KEY_BYTES or not 0 < key_id < 256]
    if bad or ring.active not in keys:
        message = (
            f"the token key ring {path} needs 32-byte keys with ids 1 to 255, one of them active"
        )
        raise UserError([Problem(message=message)])
    return ring
