"""Makes one token of many. Promise: it covers exactly what they cover, or there is none."""

import asyncio
from collections.abc import Sequence

from waybill_ingress.app.ports import Sealed, Vault
from waybill_ingress.core.births import bad_tokens, merged_parts
from waybill_ingress.core.refusals import Refusal
from waybill_shared.contract.errors import TokenExpired, TokenRefused
from waybill_shared.contract.tokens import CHARACTERS_MAX, Token

TOKENS_MAX = 10_000  # in one request


class Merges:
    def __init__(self, vault: Vault) -> None:
        self._vault = vault

    async def merge(self, texts: Sequence[str]) -> Sealed:
        if len(texts) > TOKENS_MAX:
            detail = f"{len(texts)} tokens in one request, {TOKENS_MAX} is the most"
            hint = "merge them in parts, then what came of it"
            raise Refusal("too_many_tokens", detail, hint=hint, tokens_max=TOKENS_MAX)
        return await asyncio.to_thread(self._merge, texts)  # opening many takes a while

    def _merge(self, texts: Sequence[str]) -> Sealed:
        tokens = self._opened(texts)
        sealed = self._vault.seal_merged(
            merged_parts(tokens),
            oldest_at=min(token.lives_since for token in tokens),
            identity_assumed=any(token.identity_assumed for token in tokens),
        )
        size = len(sealed.token)
        if size > CHARACTERS_MAX:
            detail = f"the merged token has {size} characters, {CHARACTERS_MAX} is the most"
            hint = "merge fewer: each gap between the records takes some characters"
            raise Refusal("token_too_large", detail, hint=hint)
        return sealed

    def _opened(self, texts: Sequence[str]) -> list[Token]:
        opened: list[Token] = []
        refused: list[int] = []
        expired: list[int] = []
        for index, text in enumerate(texts):
            try:
                opened.append(self._vault.open(text))
            except TokenRefused:
                refused.append(index)
            except TokenExpired:
                expired.append(index)
        if refused or expired:
            raise bad_tokens(refused, expired)
        return opened
