"""The key ring, and the seal by which only who has it can read what it sealed.

AES-256-GCM. What a seal is bound to is not in it, but must be named to open it.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from waybill_shared.contract.errors import ContractError

NONCE_BYTES: Final = 12
KEY_BYTES: Final = 32
KEYS_MAX: Final = 255  # as many as a ring may hold

Bound = tuple[str, str]
"""The kind of what is sealed, and its owner."""


class NotOpened(ContractError):
    """It was not sealed with this ring for what was named, or is damaged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRing:
    """Keys by id; the active one seals, all of them open."""

    active: int
    keys: dict[int, bytes]


def seal_bytes(plain: bytes, ring: KeyRing, *, nonce: bytes, bound: Bound) -> bytes:
    """Seal `plain` with the active key. `nonce` must be 12 fresh random bytes."""
    head = bytes([ring.active])
    sealed = _cipher(ring.keys[ring.active]).encrypt(nonce, plain, _associate(head, bound))
    return head + nonce + sealed


def open_bytes(raw: bytes, ring: KeyRing, *, bound: Bound) -> bytes:
    """Open a seal and return its content. Raise NotOpened if that fails."""
    head, nonce, sealed = raw[:1], raw[1 : 1 + NONCE_BYTES], raw[1 + NONCE_BYTES :]
    try:
        return _cipher(ring.keys[head[0]]).decrypt(nonce, sealed, _associate(head, bound))
    except (InvalidTag, KeyError, IndexError, ValueError) as error:
        raise NotOpened from error


@lru_cache(maxsize=KEYS_MAX)
def _cipher(key: bytes) -> AESGCM:
    return AESGCM(key)


def _associate(head: bytes, bound: Bound) -> bytes:
    what, whose = bound
    return what.encode() + head + whose.encode()
