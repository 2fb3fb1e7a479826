"""A producer with a token that covers its records."""

import asyncio
from typing import TYPE_CHECKING

from waybill.aio.tokens import AsyncToken
from waybill.pipelines import Pipeline
from waybill.tracking import Tracking
from waybill.waiting import WAIT_TIMEOUT_S

if TYPE_CHECKING:
    from waybill.aio.records import AsyncRecordCalls
    from waybill.tracking import OnDelivery, Producer


class AsyncTracked(Tracking):
    """A producer with a token that covers its records; `AsyncClient.track` makes it.

    `produce` does not wait and is not awaited. While `token` flushes, callbacks run in a thread.
    """

    def __init__(
        self,
        client: "AsyncRecordCalls",
        producer: "Producer",
        pipeline: Pipeline,
        cluster_id: str,
        on_delivery: "OnDelivery | None",
    ) -> None:
        super().__init__(producer, pipeline, cluster_id, on_delivery)
        self._client = client

    async def token(self, timeout_s: float = WAIT_TIMEOUT_S) -> AsyncToken:
        """Return one token for all that was produced here until now; flush the producer first.

        NotDelivered: some records were not delivered; `failed` says which. StillUndelivered:
        `timeout_s` is over before all were acknowledged. Unusable: nothing was produced. Invalid: a
        topic was created again meanwhile, or the producer writes to another Kafka than the pipeline
        reads.
        """
        tokens: list[AsyncToken] = []
        for spans in await asyncio.to_thread(self._settle, timeout_s):
            issued = await self._client.token_for(
                self._pipeline, positions=spans, cluster_id=self._cluster_id
            )
            tokens.append(issued.token)
        return tokens[0] if len(tokens) == 1 else await self._client.merge(tokens)
