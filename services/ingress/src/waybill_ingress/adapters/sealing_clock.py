"""The clock, the keys and the random numbers of ingress. Fulfils `SealingClock` and `Vault`."""

import os
import secrets
from collections.abc import Sequence

from waybill_ingress.app.ports import Sealed
from waybill_shared.contract.sealing import NONCE_BYTES, KeyRing
from waybill_shared.contract.tokens import REQUEST_ID_BYTES, Part, Token, open_token, seal
from waybill_shared.contract.webhooks import SECRET_BYTES, seal_secret
from waybill_shared.process.clock import Clock


class RandomMint:
    def __init__(self, ring: KeyRing, clock: Clock) -> None:
        self._ring = ring
        self._clock = clock

    def seal(
        self,
        parts: Sequence[Part],
        *,
        tenant: str,
        identity_assumed: bool = False,
        oldest_at: int | None = None,
    ) -> Sealed:
        drawn = os.urandom(REQUEST_ID_BYTES + NONCE_BYTES)  # each draw lets other threads run first
        token = Token(
            issued_at=self._clock.now_ms(),
            request_id=drawn[:REQUEST_ID_BYTES].hex(),
            parts=tuple(parts),
            identity_assumed=identity_assumed,
            oldest_at=oldest_at,
        )
        text = seal(token, self._ring, tenant=tenant, nonce=drawn[REQUEST_ID_BYTES:])
        return Sealed(token=text, issued_at=token.issued_at)

    def open(self, text: str, *, tenant: str) -> Token:
        return open_token(text, self._ring, tenant=tenant, now_ms=self._clock.now_ms())

    def draw_secret(self) -> bytes:
        return secrets.token_bytes(SECRET_BYTES)

    def seal_secret(self, secret: bytes, *, watch: str) -> str:
        return seal_secret(secret, self._ring, watch=watch, nonce=os.urandom(NONCE_BYTES))

    def now_ms(self) -> int:
        return self._clock.now_ms()

    def nonce(self) -> str:
        return secrets.token_hex(16)
