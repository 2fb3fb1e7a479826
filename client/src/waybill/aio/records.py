"""The questions of a client about records: send them, and make tokens that cover them."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from waybill import questions
from waybill.aio.outcomes import AsyncOutcomeCalls
from waybill.aio.tokens import AsyncIssuedToken, AsyncReceipt, AsyncReplayed, AsyncToken
from waybill.dead_letters import Edit
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
        """Send records in one request: dicts, dataclasses, JSON lines, or a `Payload` such as CSV.

        If some rows do not fit the input, the good rows are kept and the receipt names the bad
        ones. If all are bad, Invalid is raised and nothing is kept; with `atomic` also if one is
        bad. Unusable: a record has a value that JSON cannot represent; nothing is sent. NotFound:
        there is no such pipeline or input. TooLarge: send less at once. The token is of this
        `generation` of the pipeline at least; without one, of the newest change by this client.

        The request has a key of its own, and is repeated safely when a connection breaks: the
        records are kept once. After NoAnswer or Unreachable it is not known whether they were. With
        a `key` of yours you can send the very same records again, for a day, and they are kept
        once.
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
        """Return a token for a text that was stored; nothing is asked.

        Unusable: the text cannot be a token.
        """
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
        """Make a token for records that are in Kafka already.

        It covers all that an input has now, or what a `connector` of the input has written by now,
        or `positions`. `cluster_id` is the id of the Kafka of the positions, to make sure that
        Waybill reads the same one. `generation`: as for `send`. Invalid: a position does not exist,
        or is in no topic that the pipeline reads. NotFound: there is no such pipeline, input or
        connector.
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
        yes: bool = False,
        edited: Edit | None = None,
        generation: int | None = None,
    ) -> AsyncReplayed:
        """Replay dead letters in the stages where they died, and return a token for them.

        What comes of them goes into the sinks that lack it, and no others. Each is replayed once,
        however often you ask for it, and the same ids get the same token. With `again` they are
        replayed once more. With `yes` also where old rows may take the place of newer ones, which
        is a Conflict else.

        `edited`, as `{"value": b"…"}`, is for a single id: the stage processes this record in place
        of the one that died. Invalid: it does not fit the schema of its input. Conflict: the letter
        was replayed before, as it was or with another edit; `again` means both.

        If one cannot be replayed, none is, and `rejected` has the index of each that cannot. Then
        the error is NotFound, Expired (retention deleted it) or Conflict (its sinks are gone, or
        it would be all that one contains). TooLarge: ask for less than 1,000 at once.
        `generation`: as for `send`.
        """
        if_match = self._generations.if_match(pipeline, generation)
        question = questions.replay(
            pipeline, ids, again=again, yes=yes, edited=edited, if_match=if_match
        )
        return AsyncReplayed.read(await self._ask(question), self._hold)

    async def merge(self, tokens: Iterable[AnyToken]) -> AsyncToken:
        """Make one token for exactly what the tokens cover; it is as old as the oldest of them.

        They may be of several pipelines. NotFound or Expired: some are not of this Waybill, or too
        old; `rejected` has their indexes. TooLarge: there are more than 10,000, or they have too
        many gaps.
        """
        merged = await self._ask(questions.merge(tokens))
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

        The producer is your own. Records that go through the block's `produce` are tracked, and
        `token` covers exactly these. NotFound: there is no such pipeline. KafkaAway: the producer's
        Kafka does not answer within `timeout_s`. It needs confluent-kafka, which the extra [kafka]
        installs.
        """
        from waybill.aio.tracked import AsyncTracked
        from waybill.tracking import cluster_of

        known = Pipeline.read(await self._ask(questions.pipeline(pipeline)))
        cluster_id = await asyncio.to_thread(cluster_of, producer, known, timeout_s)
        tracked = AsyncTracked(self, producer, known, cluster_id, on_delivery)
        try:
            yield tracked
        finally:
            tracked.close()

    def _hold(self, text: str) -> AsyncToken:
        return AsyncToken(text, self)
