"""What a write is known by when it is sent again: its key, and what was asked. Pure."""

import hashlib
from dataclasses import dataclass
from typing import Final

from waybill_shared.contract.callers import Caller
from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.problems import Slug

CHARACTERS_MAX: Final = 255
HEADER: Final = "Idempotency-Key"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedRequest:
    """`who` is of the caller and the key, `request` of what is asked: hashes. `where`: its path, of
    this tenant."""

    who: str
    request: str
    where: str


def read_key(given: list[str]) -> str | None:
    """The key, of all headers of that name."""
    if not given:
        return None
    if len(given) > 1:
        raise _bad("stands there more than once")
    key = given[0].strip(" \t")  # by the rules of HTTP no part of it
    if not key:
        raise _bad("is empty")
    if len(key) > CHARACTERS_MAX:
        raise _bad(f"has {len(key)} characters, {CHARACTERS_MAX} is the most")
    if not (key.isascii() and key.isprintable()):
        raise _bad("has a character that is not printable ASCII")
    return key


def keyed(
    caller: Caller, key: str, *, method: str, path: str, query: str, media_type: str, digest: str
) -> KeyedRequest:
    """Keys of different callers never meet. `digest`: of the body."""
    return KeyedRequest(
        who=_hash(caller.tenant, caller.key_id or "", key),
        request=_hash(method, path, query, media_type, digest),
        where=f"{caller.tenant} {path}",
    )


def _hash(*parts: str) -> str:
    """128 bits; no part can be taken for two."""
    lengths = "".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.sha256(lengths.encode()).hexdigest()[:32]


def _bad(reason: str) -> Refusal:
    hint = "send one key for one request, a random UUID for example"
    return Refusal(Slug.BAD_IDEMPOTENCY_KEY, f"{HEADER} {reason}", hint=hint)
