"""The key ring, and the seal by which only who has it can read what it sealed.

AES-256-GCM. What a seal is bound to is not in it, but must be named to open it.
"""

import base64
import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from waybill_shared.contract.errors import ContractError, UserError
from waybill_shared.contract.events import Problem

NONCE_BYTES: Final = 12
KEY_BYTES: Final = 32
KEYS_MAX: Final = 255  # as many as a ring may hold

Bound = tuple[str, str]
"""What it is, and whose."""


class NotOpened(ContractError):
    """It was not sealed with this ring for what was named, or is damaged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRing:
    """Keys by id; the active one seals, all of them open."""

    active: int
    keys: dict[int, bytes]


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


def seal_bytes(plain: bytes, ring: KeyRing, *, nonce: bytes, bound: Bound) -> bytes:
    """`nonce` must be 12 fresh random bytes."""
    head = bytes([ring.active])
    sealed = _cipher(ring.keys[ring.active]).encrypt(nonce, plain, _named(head, bound))
    return head + nonce + sealed


def open_bytes(raw: bytes, ring: KeyRing, *, bound: Bound) -> bytes:
    """What was sealed; NotOpened."""
    head, nonce, sealed = raw[:1], raw[1 : 1 + NONCE_BYTES], raw[1 + NONCE_BYTES :]
    try:
        return _cipher(ring.keys[head[0]]).decrypt(nonce, sealed, _named(head, bound))
    except (InvalidTag, KeyError, IndexError, ValueError) as error:
        raise NotOpened from error


@lru_cache(maxsize=KEYS_MAX)
def _cipher(key: bytes) -> AESGCM:
    return AESGCM(key)


def _named(head: bytes, bound: Bound) -> bytes:
    what, whose = bound
    return what.encode() + head + whose.encode()
