"""API keys: their form, and the file with the hash of each. The keys themselves are stored nowhere.

The form is `wb_<env>_<id>_<secret>`. By the prefix scanners find a leaked key. Logs and people may
name the id. The secret is 256 random bits, so one round of SHA-256 hides it.
"""

import fcntl
import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.contract.routes import Scope

ID_BYTES = 6
SECRET_BYTES = 32
ENV = r"[a-z0-9]{1,16}"
FORM = re.compile(rf"wb_{ENV}_([0-9a-f]{{{2 * ID_BYTES}}})_[0-9a-f]{{{2 * SECRET_BYTES}}}")


class ApiKey(BaseModel):
    """The record of a key."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    env: str
    name: str = ""
    sha256: str = Field(pattern="^[0-9a-f]{64}$")
    scopes: frozenset[Scope]
    created_at: AwareDatetime
    expires_at: AwareDatetime | None = None

    def expired(self, now: datetime) -> bool:
        return self.expires_at is not None and self.expires_at <= now


class ApiKeys(BaseModel):
    """The content of a keys file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    keys: tuple[ApiKey, ...] = ()

    def find(self, text: str) -> ApiKey | None:
        """Return the key with this text, expired or not; None if there is none.

        A wrong secret takes as long as a right one.
        """
        form = FORM.fullmatch(text)
        digest = _hash(text)
        known = (key for key in self.keys if form is not None and key.id == form[1])
        return next((key for key in known if hmac.compare_digest(key.sha256, digest)), None)


def read_keys(path: Path) -> ApiKeys:
    """Read the file of keys. Raise UserError if it does not exist or has another form."""
    try:
        return ApiKeys.model_validate_json(path.read_bytes())
    except OSError as error:
        reason = error.strerror
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        reason = f"{place}: {first['msg']}" if place else first["msg"]
    message = f"the API keys file {path} cannot be read: {reason}"
    raise UserError([Problem(message=message, hint="`waybill keys new` makes one")])


def ensure_file(path: Path) -> bool:
    """Make the file without a key if it is missing, and return True if it was made now.

    Nobody has access before a key is added.
    """
    with _only_one(path):
        missing = not path.exists()
        if missing:
            _write(path, ApiKeys())
        return missing


def add_key(
    path: Path,
    scopes: frozenset[Scope],
    *,
    env: str,
    now: datetime,
    name: str = "",
    life: timedelta | None = None,
) -> tuple[str, ApiKey]:
    """Add a new key to the file.

    Return its text, which nobody can read again, and what the file keeps of it.
    """
    key_id = secrets.token_hex(ID_BYTES)
    text = f"wb_{env}_{key_id}_{secrets.token_hex(SECRET_BYTES)}"
    made = ApiKey(
        id=key_id,
        env=env,
        name=name,
        sha256=_hash(text),
        scopes=scopes,
        created_at=now,
        expires_at=now + life if life is not None else None,
    )
    with _only_one(path):
        before = read_keys(path) if path.exists() else ApiKeys()
        _write(path, ApiKeys(keys=(*before.keys, made)))
    return text, made


def revoke_key(path: Path, key_id: str) -> bool:
    """Remove the key with this id from the file. Return True if the file had it."""
    with _only_one(path):
        before = read_keys(path)
        left = tuple(key for key in before.keys if key.id != key_id)
        if len(left) < len(before.keys):
            _write(path, ApiKeys(keys=left))
        return len(left) < len(before.keys)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@contextmanager
def _only_one(path: Path) -> Iterator[None]:
    """Lock the file for one writer at a time: the others wait."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_name(f".{path.name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _write(path: Path, keys: ApiKeys) -> None:
    """Replace the file in one step, readable by its owner only: no reader sees half of it."""
    partial = path.with_name(f".{path.name}.part")
    partial.unlink(missing_ok=True)
    with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(keys.model_dump_json(indent=1) + "\n")
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
