"""What clients ask about records: to send them, and for tokens that cover them."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from waybill import questions
from waybill.aio.outcomes import AsyncOutcomeCalls
from waybill.aio.tokens import AsyncIssuedToken, AsyncReceipt, AsyncReplayed, AsyncToken
from waybill.models import Position, Span
from waybill.payloads import Records
from waybill.pipelines import Pipeline
from waybill.tokens import AnyToken, text_of
from waybill.waiting import START_TIMEOUT_S

if TYPE_CHECKING:
    from waybill.aio.tracked import AsyncTracked
    from waybill.tracking import OnDelivery, Producer


class AsyncRecordCalls(AsyncOutcomeCalls):
    async def send(
        self,
        pipeline: str,
        input: str,
        records: Records,
        *,
        atomic: bool = False,
        request_id: str | None = None,
        generation: int | None = None,
        key: str | None = None,
    ) -> AsyncReceipt:
        """Send records, as dicts, dataclasses or JSON lines, in one request; or a `Payload`, for
        example of CSV.

        Unusable: a record has a value that JSON cannot hold; nothing is sent. Of rows that do not
        fit the input the good are kept and the bad named in the receipt; when all are bad, Invalid
        is raised and nothing is kept; with `atomic` also when one is bad. NotFound: no such
        pipeline or input. TooLarge: send less at once. The token is of this `generation` of the
        pipeline at least; else of what this client has last changed.

        It has a key of its own, and is repeated safely when a connection breaks: the records are
        kept once. After NoAnswer or Unreachable it is not known whether they were; with a `key` of
        yours you can send the very same records again, for a day, and have them kept once.
        """
        if_match = self._generations.if_match(pipeline, generation)
        question = questions.send(
            pipeline,
            input,
            records,
            atomic=atomic,
            request_id=request_id,
            if_match=if_match,
            key=self._key(key),
        )
        return AsyncReceipt.read(await self._write(question), self._hold)

    def token(self, text: str) -> AsyncToken:
        """The token that was stored as text; asks nothing. Unusable: the text cannot be one."""
        return self._hold(text_of(text))

    async def token_for(
        self,
        pipeline: str,
        *,
        input: str | None = None,
        positions: Iterable[Position | Span] | None = None,
        connector: str | None = None,
        cluster_id: str | None = None,
        generation: int | None = None,
    ) -> AsyncIssuedToken:
        """A token for all that an input holds now, for what a connector of it has written by now,
        or for positions in Kafka.

        `cluster_id`: of the Kafka that the positions are in, to be sure that it is this Waybill's.
        Invalid: a position that is not there, or in no topic that the pipeline reads. NotFound: no
        such pipeline, input or connector. `generation`: as for `send`.
        """
        question = questions.token_for(
            pipeline,
            input=input,
            positions=positions,
            connector=connector,
            cluster_id=cluster_id,
            if_match=self._generations.if_match(pipeline, generation),
        )
        return AsyncIssuedToken.read(await self._ask(question), self._hold)

    async def replay(
        self,
        pipeline: str,
        ids: Iterable[str],
        *,
        again: bool = False,
        generation: int | None = None,
    ) -> AsyncReplayed:
        """Send dead letters to the topics that they come from, and get the token for them.

        Each is sent once, however often it is asked for, and the same ids get the same token; with
        `again` they are sent once more. All stages, sinks and pipelines that read the topic get
        them: also a sink that has such a record already. NotFound, Expired (retention took it) or
        Conflict (its topic was created again, or is no input of the pipeline): `rejected` has the
        index of each id that cannot be sent, and then none was. TooLarge: send less than 1,000 at
        once. `generation`: as for `send`.
        """
        if_match = self._generations.if_match(pipeline, generation)
        question = questions.replay(pipeline, ids, again=again, if_match=if_match)
        return AsyncReplayed.read(await self._ask(question), self._hold)

    async def merge(self, tokens: Iterable[AnyToken]) -> AsyncToken:
        """One token for exactly what the tokens cover, as old as the oldest of them.

        They may be of several pipelines. NotFound or Expired: some are none of ours, or too old;
        `rejected` has their indexes. TooLarge: more than 10,000, or with too many gaps.
        """
        merged = await self._connection.ask(questions.merge(tokens))
        return self._hold(merged.text("token"))

    @asynccontextmanager
    async def track(
        self,
        producer: "Producer",
        pipeline: str,
        *,
        on_delivery: "OnDelivery | None" = None,
        timeout_s: float = START_TIMEOUT_S,
    ) -> AsyncIterator["AsyncTracked"]:
        """Cover what the block produces to the pipeline's inputs with one token.

        The producer is your own; what goes through the block's `produce` is tracked, and `token`
        covers exactly that. NotFound: no such pipeline. KafkaAway: the producer's Kafka does not
        answer within `timeout_s`. Needs confluent-kafka, which the extra [kafka] brings.
        """
        from waybill.aio.tracked import AsyncTracked
        from waybill.tracking import cluster_of

        known = Pipeline.read(await self._connection.ask(questions.pipeline(pipeline)))
        cluster_id = await asyncio.to_thread(cluster_of, producer, known, timeout_s)
        tracked = AsyncTracked(self, producer, known, cluster_id, on_delivery)
        try:
            yield tracked
        finally:
            tracked.close()

    def _hold(self, text: str) -> AsyncToken:
        return AsyncToken(text, self)
