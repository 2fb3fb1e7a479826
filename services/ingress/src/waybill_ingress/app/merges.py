"""Makes one token from many. Promise: it covers exactly what they cover, or there is none."""

import asyncio
from collections.abc import Sequence

from waybill_ingress.app.measuring import count_token
from waybill_ingress.app.ports import Sealed, SealingClock, Vault
from waybill_ingress.core.token_coverage import bad_tokens, merge_parts
from waybill_shared.contract.callers import Caller
from waybill_shared.contract.errors import Refusal, TokenExpired, TokenRefused
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.tokens import CHARACTERS_MAX, Token

TOKENS_MAX = 10_000  # in one request


class Merges:
    def __init__(self, mint: SealingClock, vault: Vault) -> None:
        self._mint = mint
        self._vault = vault

    async def merge(self, caller: Caller, texts: Sequence[str]) -> Sealed:
        if len(texts) > TOKENS_MAX:
            detail = f"{len(texts)} tokens in one request, {TOKENS_MAX} is the most"
            hint = "merge them in parts, then the results"
            raise Refusal(Slug.TOO_MANY_TOKENS, detail, hint=hint, tokens_max=TOKENS_MAX)
        # opening many of them needs a while
        sealed = await asyncio.to_thread(self._merge, caller.tenant, texts)
        count_token("merge")
        return sealed

    def _merge(self, tenant: str, texts: Sequence[str]) -> Sealed:
        tokens = self._open(tenant, texts)
        sealed = self._mint.seal(
            merge_parts(tokens),
            tenant=tenant,
            oldest_at=min(token.lives_since for token in tokens),
            identity_assumed=any(token.identity_assumed for token in tokens),
        )
        size = len(sealed.token)
        if size > CHARACTERS_MAX:
            detail = f"the merged token has {size} characters, {CHARACTERS_MAX} is the most"
            hint = "merge fewer: each gap between the records takes some characters"
            raise Refusal(Slug.TOKEN_TOO_LARGE, detail, hint=hint)
        return sealed

    def _open(self, tenant: str, texts: Sequence[str]) -> list[Token]:
        opened: list[Token] = []
        refused: list[int] = []
        expired: list[int] = []
        for index, text in enumerate(texts):
            try:
                opened.append(self._vault.open(text, tenant=tenant))
            except TokenRefused:
                refused.append(index)
            except TokenExpired:
                expired.append(index)
        if refused or expired:
            raise bad_tokens(refused, expired)
        return opened
