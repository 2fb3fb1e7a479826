"""Tokens as they are after a time: resealed with an earlier time of issue."""

import secrets
from dataclasses import replace

from waybill_local.stack import StackState
from waybill_shared.access.authentication import DEFAULT_TENANT
from waybill_shared.access.key_ring import load_key_ring
from waybill_shared.contract.sealing import NONCE_BYTES
from waybill_shared.contract.tokens import open_token, seal
from waybill_shared.process.clock import SystemClock


def aged(token: str, stack: StackState, by_ms: int) -> str:
    """Return the token as if it had been issued so much earlier."""
    ring = load_key_ring(stack.folder / "keys.json")
    now_ms = SystemClock().now_ms()
    opened = open_token(token, ring, tenant=DEFAULT_TENANT, now_ms=now_ms)
    older = replace(opened, issued_at=opened.issued_at - by_ms)
    return seal(older, ring, tenant=DEFAULT_TENANT, nonce=secrets.token_bytes(NONCE_BYTES))
