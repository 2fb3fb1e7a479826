"""Makes tokens for what connectors have written.

Promise: a token covers exactly what the connector had written when the token was asked for.
"""

from waybill_ingress.app.measuring import count_token
from waybill_ingress.app.ports import News, Sealed, SealingClock
from waybill_ingress.app.registry import Registry
from waybill_ingress.app.tokens import TokenIssuer
from waybill_ingress.core.if_match import Demand
from waybill_ingress.core.inputs import find_connector
from waybill_ingress.core.token_coverage import part_of
from waybill_shared.contract.callers import Caller
from waybill_shared.contract.connector_view import ConnectorDetail, connector_detail
from waybill_shared.contract.errors import Retryable
from waybill_shared.topic_views.connectors import KnownConnectors


class ConnectorTokens:
    def __init__(
        self,
        registry: Registry,
        tokens: TokenIssuer,
        mint: SealingClock,
        known: KnownConnectors,
        news: News,
    ) -> None:
        self._registry = registry
        self._tokens = tokens
        self._mint = mint
        self._known = known
        self._news = news

    async def issue(
        self,
        caller: Caller,
        pipeline: str,
        source: str,
        connector: str,
        *,
        demand: Demand | None = None,
    ) -> tuple[Sealed, ConnectorDetail]:
        """Return the token, and how far the connector is. Raises Refusal and Retryable."""
        record, declared = await self._registry.input(caller.tenant, pipeline, source, demand)
        wanted = find_connector(record, source, connector)
        if not await self._news.catch_up():
            raise Retryable("this ingress does not know what was fetched by now: try again")
        progress = self._known.of(record, declared.topic, wanted)
        detail = connector_detail(progress, running=record.desired == "running")
        count_token("connector")
        if not progress.spans:
            return await self._tokens.for_nothing(caller, pipeline, source), detail
        await self._registry.present(record, declared, fresh=True)
        return self._mint.seal([part_of(record, progress.spans)], tenant=caller.tenant), detail
