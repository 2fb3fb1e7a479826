"""Who asks, and whether they may: the API key of a request against the scope of its route.

Holds the keys in force, read again when their file changes; knows HTTP only as a header's text.
"""

import logging
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from waybill_shared.access.api_keys import ApiKeys, read_keys
from waybill_shared.contract.callers import Caller
from waybill_shared.contract.errors import Refusal, UserError
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.routes import Scope
from waybill_shared.process.clock import Clock, SystemClock

logger = logging.getLogger(__name__)

LOOK_INTERVAL_S = 1.0  # how long a revoked key may still be good
DEFAULT_TENANT: Final = "default"  # the tenant of all callers: no key names one yet
ANYONE: Final = Caller(tenant=DEFAULT_TENANT, scopes=frozenset(Scope), key_id=None)
BEARER: Final = Caller(tenant=DEFAULT_TENANT, scopes=frozenset(), key_id=None)
"""A caller that has a token and no API key."""
HOW = "send the header `Authorization: Bearer wb_…`, with a key that `waybill keys new` has made"


class KeysInForce:
    """The keys of a file. Where it can no longer be read the last good ones stay in force."""

    def __init__(
        self, path: Path, clock: Clock, *, look_interval_s: float = LOOK_INTERVAL_S
    ) -> None:
        self._path = path
        self._clock = clock
        self._look_interval_s = look_interval_s
        self._version = _version(path)
        self._keys = read_keys(path)
        self._looked_at = time.monotonic()
        self._wrong: str | None = None
        self._lock = threading.Lock()

    def check(self) -> str | None:
        """Return what is wrong with the file, or None; a readiness check."""
        self._look()
        return self._wrong

    def require(self, authorization: str, scope: Scope) -> Caller:
        """Return the owner of the key in the header if the key has `scope`; raise Refusal
        otherwise.
        """
        kind, _, text = authorization.partition(" ")
        if kind.lower() != "bearer" or not text:
            raise Refusal(Slug.KEY_MISSING, "this needs an API key", hint=HOW)
        key = self._look().find(text.strip())
        if key is None:
            detail = "the API key is none of those in force: mistyped, revoked or of another place"
            raise Refusal(Slug.KEY_REFUSED, detail, hint=HOW)
        if key.expired(datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC)):
            raise Refusal(Slug.KEY_EXPIRED, f"API key {key.id} expired at {key.expires_at}")
        if scope not in key.scopes:
            has = sorted(key.scopes)
            detail = f"this needs scope {scope}; API key {key.id} has {', '.join(has) or 'none'}"
            raise Refusal(Slug.SCOPE_MISSING, detail, scope=str(scope), scopes=has)
        return Caller(tenant=DEFAULT_TENANT, scopes=key.scopes, key_id=key.id)

    def _look(self) -> ApiKeys:
        """Return the keys. Look at the file first if the last look is too long ago."""
        with self._lock:
            if time.monotonic() - self._looked_at >= self._look_interval_s:
                self._looked_at = time.monotonic()
                self._refresh()
            return self._keys

    def _refresh(self) -> None:
        version = _version(self._path)
        if version == self._version:
            return
        self._version = version
        try:
            self._keys, self._wrong = read_keys(self._path), None
            logger.info("api keys read again", extra={"keys": len(self._keys.keys)})
        except UserError as error:
            self._wrong = str(error)
            logger.error("the last good api keys stay in force", extra={"reason": self._wrong})


def keys_in_force(path: Path | None) -> KeysInForce | None:
    """Return the keys of the file that the setting `api_keys_file` names.

    None means that everyone who reaches the port is trusted.
    """
    return None if path is None else KeysInForce(path, SystemClock())


def _version(path: Path) -> tuple[int, int, int] | None:
    """Return a value that changes when the file changes; None if the file does not exist."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
