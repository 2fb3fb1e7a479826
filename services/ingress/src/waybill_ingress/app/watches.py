"""Accepts watches: requests for an event when a token is final.

Promise: a watch that was answered is in Kafka, and its event is sent once its token is final.
"""

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from waybill_ingress.app.ports import Log, News, SealingClock, Vault
from waybill_ingress.app.records import one
from waybill_ingress.app.webhook_gate import WebhookGate
from waybill_shared.contract.asked_views import settle
from waybill_shared.contract.callers import Caller
from waybill_shared.contract.codec import encode
from waybill_shared.contract.errors import Refusal, Retryable, invalid
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.token_life import TOKEN_LIFE_MS
from waybill_shared.contract.token_views import ALL, TokenView, WantedView
from waybill_shared.contract.tokens import Token
from waybill_shared.contract.watches import TokenWatch, as_closed
from waybill_shared.contract.webhooks import Webhook
from waybill_shared.contract.words import WatchState
from waybill_shared.topic_views.pipelines import PipelineDirectory
from waybill_shared.topic_views.watches import WatchBook

WATCHES_MAX: Final = 100_000  # open ones of one API key
EVENTS_KEPT_MS: Final = 7 * 24 * 3_600_000 - 600_000  # in `waybill.status`
NEEDED: Final = (
    "it is needed with an Idempotency-Key: answers to those are stored, and secrets must not be:"
    " send `whsec_` and 24 to 64 random bytes in Base64"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedWatch:
    """A watch that is asked for. `secret`: of the webhook, if it was given."""

    token: str
    labels: dict[str, str]
    view: WantedView = ALL
    url: str | None = None
    secret: bytes | None = None


class Watches:
    def __init__(
        self,
        book: WatchBook,
        news: News,
        log: Log,
        gate: WebhookGate,
        owners: PipelineDirectory,
        *,
        mint: SealingClock,
        vault: Vault,
        topic: str,
    ) -> None:
        self._book = book
        self._news = news
        self._log = log
        self._gate = gate
        self._owners = owners
        self._mint = mint
        self._vault = vault
        self._topic = topic

    async def begin(
        self, caller: Caller, wanted: WantedWatch, log: Log | None = None
    ) -> tuple[TokenWatch, bytes | None]:
        """Open a watch. Return it, with the secret if one was made here.

        `log`, here and below: another log to write to, with which the answer is kept.
        """
        opened = self._vault.open(wanted.token, tenant=caller.tenant)
        if self._book.count_open(caller.tenant, caller.actor) >= WATCHES_MAX:
            detail = f"{WATCHES_MAX} watches of this API key are open"
            hint = "one watch may be for many tokens: merge them by POST /v1/tokens"
            raise Refusal(Slug.TOO_MANY_WATCHES, detail, hint=hint, watches_max=WATCHES_MAX)
        view = await self._resolve(wanted.view, caller, opened)
        made = await self._make_secret(wanted, remembered=log is not None)
        own = self._mint.nonce()
        watch = TokenWatch(
            id=own,
            tenant=caller.tenant,
            actor=caller.actor,
            token=wanted.token,
            at=self._mint.now_ms(),
            expires_at=opened.lives_since + TOKEN_LIFE_MS,
            state=WatchState.OPEN,
            labels=wanted.labels,
            view=view,
            webhook=self._webhook(wanted.url, made or wanted.secret, own),
        )
        await self._write(watch, log)
        return watch, made

    async def _make_secret(self, wanted: WantedWatch, *, remembered: bool) -> bytes | None:
        """Return a new secret for a webhook; None if it needs none.

        `remembered`: the answer is kept, so no secret may be in it.
        """
        if wanted.url is None:
            return None
        await self._gate.check(wanted.url)
        if wanted.secret is not None:
            return None
        if remembered:
            raise invalid("webhook.secret", NEEDED)
        return self._vault.draw_secret()

    async def _resolve(self, wanted: WantedView, caller: Caller, token: Token) -> TokenView:
        if not (wanted.sinks or wanted.through):
            return TokenView(level=wanted.level)
        with suppress(Refusal, Retryable):
            return self._resolve_now(wanted, caller, token)
        await self._news.catch_up()  # other processes may know more of the pipelines by now
        return self._resolve_now(wanted, caller, token)

    def _resolve_now(self, wanted: WantedView, caller: Caller, token: Token) -> TokenView:
        owned = [(part, self._owners.owner_of(part.pipeline_id)) for part in token.parts]
        known = [(part, owner) for part, owner in owned if owner is not None]
        lags = any(record.generation < part.generation for part, record in known)
        if lags or len(known) < len(owned):
            raise Retryable("this ingress does not know all pipelines of the token yet: try again")
        return settle(wanted, caller, known, self._owners, "view.")

    async def redeliver(self, caller: Caller, id: str, log: Log | None = None) -> TokenWatch:
        watch = await self._find(caller, id)
        if watch.webhook is None:
            raise _not_due("the watch has no webhook")
        if watch.open:
            raise _not_due("the watch is still open: its event is sent when it ends")
        if self._mint.now_ms() - (watch.reported_at or 0) > EVENTS_KEPT_MS:
            raise _not_due("it was reported over a week ago, and its event is not kept any more")
        number, now_ms = watch.redeliveries + 1, self._mint.now_ms()
        again = replace(watch, redeliveries=number, redelivery_at=now_ms)
        await self._write(again, log)
        return again

    async def end(self, caller: Caller, id: str, log: Log | None = None) -> TokenWatch:
        ended = as_closed(await self._find(caller, id))
        await self._write(ended, log)
        return ended

    async def _find(self, caller: Caller, id: str) -> TokenWatch:
        """Return the watch as it is at this moment."""
        if not await self._news.catch_up():
            raise Retryable("this ingress does not know all watches yet: try again")
        watch = self._book.get(caller.tenant, id)
        if watch is None:
            raise Refusal(Slug.WATCH_NOT_FOUND, f"{id!r:.100} is the id of no watch")
        return watch

    def _webhook(self, url: str | None, secret: bytes | None, watch: str) -> Webhook | None:
        if url is None or secret is None:
            return None
        return Webhook(url=url, secret=self._vault.seal_secret(secret, watch=watch))

    async def _write(self, watch: TokenWatch, log: Log | None) -> None:
        appended = await (log or self._log).append(self._topic, one(encode(watch), watch.id))
        if not appended.delivered:
            (missing,) = (*appended.failed, *appended.refused)
            raise Retryable(f"the watch was not accepted: {missing.reason}")


def _not_due(detail: str) -> Refusal:
    return Refusal(Slug.NOTHING_TO_DELIVER, detail)
