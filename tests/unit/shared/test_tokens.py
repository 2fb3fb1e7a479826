"""Sealing and opening tokens, and the key ring."""

import base64
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given

from builders import NOW, ORDERS_ID
from strategies import patiently, tokens
from waybill_shared.access.key_ring import load_key_ring
from waybill_shared.contract.errors import TokenExpired, TokenRefused, UserError
from waybill_shared.contract.sealing import KeyRing
from waybill_shared.contract.token_life import TOKEN_LIFE_MS
from waybill_shared.contract.tokens import Part, Token, open_token, pipeline_id, seal
from waybill_shared.contract.vectors import Span

RING = KeyRing(active=1, keys={1: b"k" * 32})
NONCE = bytes(range(12))
TOKEN = Token(
    issued_at=NOW,
    request_id="00112233aabbccdd",
    parts=(
        Part(
            pipeline_id=pipeline_id("default", "uid"),
            generation=3,
            spans=tuple(
                Span(topic_id=ORDERS_ID, partition=p, start=10**12 - 500, end=10**12)
                for p in range(4)
            ),
        ),
    ),
)
TEXT = seal(TOKEN, RING, tenant="default", nonce=NONCE)


def reopen(text: str, *, ring: KeyRing = RING, tenant: str = "default", now: int = NOW) -> Token:
    return open_token(text, ring, tenant=tenant, now_ms=now)


def raw_of(text: str) -> bytes:
    body = text.removeprefix("wb1.")
    return base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))


def text_of(raw: bytes) -> str:
    return "wb1." + base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def test_token_of_four_partitions_is_short() -> None:
    assert len(TEXT) <= 160
    assert reopen(TEXT) == TOKEN


@patiently
@given(tokens())
def test_token_opens_as_it_was_sealed(token: Token) -> None:
    text = seal(token, RING, tenant="default", nonce=NONCE)
    assert reopen(text, now=token.lives_since) == token


def test_every_flipped_bit_is_refused() -> None:
    raw = raw_of(TEXT)
    for bit in range(len(raw) * 8):
        flipped = bytearray(raw)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(TokenRefused):
            reopen(text_of(bytes(flipped)))


def test_every_changed_character_is_refused() -> None:
    """Also in the last one, of which base64 uses only some bits."""
    for at in range(len(TEXT)):
        for bit in range(7):
            changed = TEXT[:at] + chr(ord(TEXT[at]) ^ 1 << bit) + TEXT[at + 1 :]
            with pytest.raises(TokenRefused):
                reopen(changed)


def test_every_truncation_is_refused() -> None:
    for length in range(len(TEXT)):
        with pytest.raises(TokenRefused):
            reopen(TEXT[:length])


@pytest.mark.parametrize(
    "text", [TEXT + "A", TEXT + "=", f" {TEXT}", TEXT.upper(), "wb2" + TEXT[3:], "wb1.é", "wb1."]
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(TokenRefused):
        reopen(text)


def test_token_of_another_tenant_is_refused() -> None:
    with pytest.raises(TokenRefused):
        reopen(TEXT, tenant="other")


def test_token_of_an_unknown_key_is_refused() -> None:
    with pytest.raises(TokenRefused):
        reopen(TEXT, ring=KeyRing(active=2, keys={2: b"k" * 32}))
    with pytest.raises(TokenRefused):
        reopen(TEXT, ring=KeyRing(active=1, keys={1: b"x" * 32}))


def test_old_key_still_opens() -> None:
    rotated = KeyRing(active=2, keys={**RING.keys, 2: b"n" * 32})
    assert reopen(TEXT, ring=rotated) == TOKEN
    fresh = seal(TOKEN, rotated, tenant="default", nonce=NONCE)
    with pytest.raises(TokenRefused):
        reopen(fresh)


def test_token_past_its_life_has_expired() -> None:
    assert reopen(TEXT, now=NOW + TOKEN_LIFE_MS) == TOKEN
    with pytest.raises(TokenExpired):
        reopen(TEXT, now=NOW + TOKEN_LIFE_MS + 1)


def test_a_merged_token_expires_with_the_oldest_in_it() -> None:
    text = seal(replace(TOKEN, oldest_at=NOW - TOKEN_LIFE_MS), RING, tenant="default", nonce=NONCE)
    assert reopen(text).issued_at == NOW
    with pytest.raises(TokenExpired):
        reopen(text, now=NOW + 1)


def test_pipeline_id_tells_tenant_and_pipeline_apart() -> None:
    named = [("a", "b"), ("ab", ""), ("a", "c"), ("x", "b")]
    assert len({pipeline_id(*names) for names in named}) == len(named)


def key(byte: str = "k", length: int = 32) -> str:
    return base64.b64encode(byte.encode() * length).decode()


def test_key_ring_is_read_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    path.write_text(json.dumps({"active": 2, "keys": {"1": key("a"), "2": key("b")}}))
    assert load_key_ring(path) == KeyRing(active=2, keys={1: b"a" * 32, 2: b"b" * 32})


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "{}", '{"active": 1}', '{"active": 1, "keys": []}',
        json.dumps({"active": "x", "keys": {"1": key()}}),
        json.dumps({"active": 1, "keys": {"one": key()}}),
        json.dumps({"active": 1, "keys": {"1": 7}}),
        json.dumps({"active": 1, "keys": {"1": key(length=16)}}),
        json.dumps({"active": 2, "keys": {"1": key()}}),
        json.dumps({"active": 0, "keys": {"0": key()}}),
        json.dumps({"active": 256, "keys": {"256": key()}}),
    ],
)  # fmt: skip
def test_damaged_key_ring_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "keys.json"
    path.write_text(text)
    with pytest.raises(UserError, match=r"the token key ring .*keys\.json"):
        load_key_ring(path)


def test_missing_key_ring_says_who_makes_one(tmp_path: Path) -> None:
    with pytest.raises(UserError) as raised:
        load_key_ring(tmp_path / "none.json")
    assert "waybill up" in raised.value.problems[0].hint
