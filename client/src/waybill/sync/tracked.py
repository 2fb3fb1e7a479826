# Made by `python -m infra.client.render` from waybill/aio: change that.
"""A producer with a token that covers its records."""

from typing import TYPE_CHECKING

from waybill.pipelines import Pipeline
from waybill.sync.tokens import Token
from waybill.tracking import Tracking
from waybill.waiting import WAIT_TIMEOUT_S

if TYPE_CHECKING:
    from waybill.sync.records import RecordCalls
    from waybill.tracking import OnDelivery, Producer


class Tracked(Tracking):
    """A producer with a token that covers its records; `Client.track` makes it.

    `produce` does not wait. While `token` flushes, callbacks run.
    """

    def __init__(
        self,
        client: "RecordCalls",
        producer: "Producer",
        pipeline: Pipeline,
        cluster_id: str,
        on_delivery: "OnDelivery | None",
    ) -> None:
        super().__init__(producer, pipeline, cluster_id, on_delivery)
        self._client = client

    def token(self, timeout_s: float = WAIT_TIMEOUT_S) -> Token:
        """Return one token for all that was produced here until now; flush the producer first.

        NotDelivered: some records were not delivered; `failed` says which. StillUndelivered:
        `timeout_s` is over before all were acknowledged. Unusable: nothing was produced. Invalid: a
        topic was created again meanwhile, or the producer writes to another Kafka than the pipeline
        reads.
        """
        tokens: list[Token] = []
        for spans in self._settle(timeout_s):
            issued = self._client.token_for(
                self._pipeline, positions=spans, cluster_id=self._cluster_id
            )
            tokens.append(issued.token)
        return tokens[0] if len(tokens) == 1 else self._client.merge(tokens)
