"""Tokens: what they hold, their compact form, and the seal around it. Nothing is stored for one.

A token is AES-256-GCM sealed, so its holder learns neither topics nor volumes and cannot forge one.
The tenant is bound in twice: in each part's pipeline id and in the seal's associated data.
"""

import base64
import binascii
import hashlib
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from waybill_shared.contract.errors import TokenExpired, TokenRefused
from waybill_shared.contract.sealing import KeyRing, NotOpened, open_bytes, seal_bytes
from waybill_shared.contract.token_life import TOKEN_LIFE_MS
from waybill_shared.contract.vectors import Span

PREFIX = "wb1."
PIPELINE_ID_BYTES = 8
REQUEST_ID_BYTES = 8
TOPIC_ID_BYTES = 16
CHARACTERS_MAX = 256 * 1024  # more than ten thousand scattered records need
PIPELINES_MAX = 10_000  # so many short names are remembered
ASSUMED_IDENTITY = 1  # flag: the producer did not name topic ids, so ingress took the present ones
MERGED = 2  # flag: `oldest_at` follows
REPLAYED = 4  # flag: each part ends with the sinks that its records go into


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Spans of one pipeline's inputs, and the generation that was valid at birth.

    The topic ids in the spans say which inputs: names of inputs change, ids never return.
    `counted`: each offset is a record; else strangers' records and markers may be among them.
    `into`: the keys of the sinks that a replay names; its spans are in `waybill.replays`.
    """

    pipeline_id: str
    generation: int
    spans: tuple[Span, ...]
    counted: bool = True
    into: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """`oldest_at`: of a merged token, when the oldest of those in it was issued."""

    issued_at: int
    request_id: str
    parts: tuple[Part, ...]
    identity_assumed: bool = False
    oldest_at: int | None = None

    @property
    def lives_since(self) -> int:
        """A merged token expires with the oldest in it: merging makes nothing younger."""
        return self.issued_at if self.oldest_at is None else self.oldest_at


@lru_cache(maxsize=PIPELINES_MAX)
def pipeline_id(tenant: str, pipeline_uid: str) -> str:
    """Return the short name of a pipeline, which a token has instead of tenant and uid."""
    named = "\0".join((tenant, pipeline_uid)).encode()
    return hashlib.sha256(named).digest()[:PIPELINE_ID_BYTES].hex()


def seal(token: Token, ring: KeyRing, *, tenant: str, nonce: bytes) -> str:
    """Seal the token and return it as text. `nonce` must be 12 fresh random bytes."""
    return _text(seal_bytes(_pack(token), ring, nonce=nonce, bound=(PREFIX, tenant)))


def open_token(text: str, ring: KeyRing, *, tenant: str, now_ms: int) -> Token:
    """Open the token in `text`.

    Raise TokenRefused if it is not ours, TokenExpired if it is too old.
    """
    if not text.startswith(PREFIX):
        raise TokenRefused
    body = text[len(PREFIX) :]
    try:
        raw = base64.b64decode(body + "=" * (-len(body) % 4), altchars=b"-_", validate=True)
        if _text(raw) != text:  # base64 leaves bits unused: one token has one text
            raise TokenRefused
        token = _unpack(open_bytes(raw, ring, bound=(PREFIX, tenant)))
    except (binascii.Error, NotOpened, IndexError, ValueError, struct.error) as error:
        raise TokenRefused from error
    if now_ms - token.lives_since > TOKEN_LIFE_MS:
        raise TokenExpired
    return token


def topic_id_bytes(topic_id: str) -> bytes:
    return base64.urlsafe_b64decode(topic_id + "==")


def _text(raw: bytes) -> str:
    return PREFIX + base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _pack(token: Token) -> bytes:
    flags = ASSUMED_IDENTITY if token.identity_assumed else 0
    oldest = b""
    if token.oldest_at is not None:
        flags, oldest = flags | MERGED, _varint(token.oldest_at)
    if any(part.into for part in token.parts):
        flags |= REPLAYED
    out = bytearray(_varint(token.issued_at))
    out += bytes.fromhex(token.request_id) + bytes([flags]) + oldest + _varint(len(token.parts))
    for part in token.parts:
        out += bytes.fromhex(part.pipeline_id) + _varint(2 * part.generation + part.counted)
        topics = sorted({span.topic_id for span in part.spans})
        out += _varint(len(topics))
        for topic_id in topics:
            spans = [span for span in part.spans if span.topic_id == topic_id]
            out += topic_id_bytes(topic_id) + _varint(len(spans))
            for span in spans:
                out += _varint(span.partition) + _pack_run(span)
        if flags & REPLAYED:
            out += _varint(len(part.into)) + b"".join(map(_pack_text, part.into))
    return bytes(out)


def _pack_text(text: str) -> bytes:
    return _varint(len(text.encode())) + text.encode()


def _pack_run(span: Span) -> bytes:
    """Pack a span as its start and its length, which is short."""
    return _varint(span.start) + _varint(span.end - span.start)


def _unpack(plain: bytes) -> Token:
    at = 0

    def number() -> int:
        nonlocal at
        value, at = _read_varint(plain, at)
        return value

    def take(length: int) -> bytes:
        nonlocal at
        at += length
        return plain[at - length : at]

    def spans() -> Iterator[Span]:
        for _ in range(number()):
            topic_id = base64.urlsafe_b64encode(take(TOPIC_ID_BYTES)).rstrip(b"=").decode()
            for _ in range(number()):
                partition, start, length = number(), number(), number()
                yield Span(topic_id=topic_id, partition=partition, start=start, end=start + length)

    def texts() -> Iterator[str]:
        for _ in range(number()):
            yield take(number()).decode()

    issued_at, request_id, flags = number(), take(REQUEST_ID_BYTES).hex(), take(1)[0]
    oldest_at = number() if flags & MERGED else None

    def part() -> Part:
        owner = take(PIPELINE_ID_BYTES).hex()
        generation, counted = divmod(number(), 2)
        return Part(
            pipeline_id=owner,
            generation=generation,
            spans=tuple(spans()),
            counted=bool(counted),
            into=tuple(texts()) if flags & REPLAYED else (),
        )

    parts = tuple(part() for _ in range(number()))
    return Token(
        issued_at=issued_at,
        request_id=request_id,
        parts=parts,
        identity_assumed=bool(flags & ASSUMED_IDENTITY),
        oldest_at=oldest_at,
    )


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _read_varint(raw: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = raw[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if not byte & 0x80:
            return value, at
        shift += 7
