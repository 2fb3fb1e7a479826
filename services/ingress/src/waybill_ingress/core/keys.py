"""Identifies a write that is sent again: by its key and by what it asks. Pure."""

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
    """A request with a key. `who` is a hash of caller and key, `request` a hash of what is asked.
    `where` is its path, with the tenant.
    """

    who: str
    request: str
    where: str


def read_key(given: list[str]) -> str | None:
    """Return the key from all headers of that name. Raises Refusal if it is not valid."""
    if not given:
        return None
    if len(given) > 1:
        raise _bad("is sent more than once")
    key = given[0].strip(" \t")  # HTTP does not count them as part of it
    if not key:
        raise _bad("is empty")
    if len(key) > CHARACTERS_MAX:
        raise _bad(f"has {len(key)} characters, {CHARACTERS_MAX} is the most")
    if not (key.isascii() and key.isprintable()):
        raise _bad("has a character that is not printable ASCII")
    return key


def keyed_request(
    caller: Caller, key: str, *, method: str, path: str, query: str, media_type: str, digest: str
) -> KeyedRequest:
    """Return the request with its key. Keys of different callers never collide. `digest` is of the
    body.
    """
    return KeyedRequest(
        who=_hash(caller.tenant, caller.key_id or "", key),
        request=_hash(method, path, query, media_type, digest),
        where=f"{caller.tenant} {path}",
    )


def _hash(*parts: str) -> str:
    """Return 128 bits of a hash. Lengths are hashed too, so no part can be read as two."""
    lengths = "".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.sha256(lengths.encode()).hexdigest()[:32]


def _bad(reason: str) -> Refusal:
    hint = "send one key for one request, a random UUID for example"
    return Refusal(Slug.BAD_IDEMPOTENCY_KEY, f"{HEADER} {reason}", hint=hint)
