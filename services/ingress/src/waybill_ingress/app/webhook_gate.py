"""Checks webhooks, and says why one is refused. The sender checks the address again."""

from typing import Protocol

from waybill_shared.contract.errors import invalid
from waybill_shared.contract.webhooks import WebhookRules, literal, read_target

LOOK_UP_S = 3.0


class NameLookup(Protocol):
    async def find(self, host: str, port: int, timeout_s: float) -> tuple[str, ...]:
        """Return the addresses of a host. Raises OSError."""


class WebhookGate:
    def __init__(self, rules: WebhookRules, names: NameLookup) -> None:
        self._rules = rules
        self._names = names

    async def check(self, url: str) -> None:
        """Raise Refusal for an address that is not allowed.

        A name that is unknown now is accepted, because it may be known when something is sent.
        """
        target = read_target(url)
        addresses = literal(target.host)
        if not addresses:
            try:
                addresses = await self._names.find(target.host, target.port, LOOK_UP_S)
            except OSError:
                addresses = ()
        if (refusal := self._rules.refusal(target, addresses)) is not None:
            raise invalid("webhook.url", refusal)
