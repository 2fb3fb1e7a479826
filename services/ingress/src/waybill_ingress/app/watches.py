"""Takes who wants to be told of tokens. Promise: a watch that was answered is in Kafka, and will be
told once its token is final."""

from waybill_ingress.app.ports import Log, Mint, News, Vault
from waybill_ingress.app.records import one
from waybill_shared.contract.callers import Caller
from waybill_shared.contract.codec import encode
from waybill_shared.contract.errors import Refusal, Retryable
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.tokens import LIFE_MS
from waybill_shared.contract.watches import TokenWatch, WatchBook, closed
from waybill_shared.contract.words import WatchState

WATCHES_MAX = 100_000  # open ones of one API key


class Watches:
    def __init__(
        self, book: WatchBook, news: News, log: Log, *, mint: Mint, vault: Vault, topic: str
    ) -> None:
        self._book = book
        self._news = news
        self._log = log
        self._mint = mint
        self._vault = vault
        self._topic = topic

    async def begin(
        self, caller: Caller, token: str, labels: dict[str, str], log: Log | None = None
    ) -> TokenWatch:
        """`log`, here and below: another one to write to."""
        opened = self._vault.open(token, tenant=caller.tenant)
        if self._book.count_open(caller.tenant, caller.actor) >= WATCHES_MAX:
            detail = f"{WATCHES_MAX} watches of this API key are open"
            hint = "one watch may be for many tokens: merge them by POST /v1/tokens"
            raise Refusal(Slug.TOO_MANY_WATCHES, detail, hint=hint, watches_max=WATCHES_MAX)
        watch = TokenWatch(
            id=self._mint.nonce(),
            tenant=caller.tenant,
            actor=caller.actor,
            token=token,
            at=self._mint.now_ms(),
            expires_at=opened.lives_since + LIFE_MS,
            state=WatchState.OPEN,
            labels=labels,
        )
        await self._write(watch, log)
        return watch

    async def end(self, caller: Caller, id: str, log: Log | None = None) -> TokenWatch:
        watch = self._book.get(caller.tenant, id)
        if watch is None and not await self._news.catch_up():
            raise Retryable("this ingress does not know all watches yet: try again")
        watch = watch or self._book.get(caller.tenant, id)
        if watch is None:
            raise Refusal(Slug.WATCH_NOT_FOUND, f"{id!r:.100} is the id of no watch")
        ended = closed(watch)
        await self._write(ended, log)
        return ended

    async def _write(self, watch: TokenWatch, log: Log | None) -> None:
        appended = await (log or self._log).append(self._topic, one(encode(watch), watch.id))
        if not appended.delivered:
            (missing,) = (*appended.failed, *appended.refused)
            raise Retryable(f"the watch was not taken: {missing.reason}")
